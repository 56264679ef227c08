"""Golden numbers of the metrics, worked out by hand."""

import numpy as np
import pytest

from ebmjax import metrics

NAN = np.nan
# Two runs of three tasks, class-incremental: nothing above the diagonal.
MATRIX = np.array(
  [
    [[0.90, NAN, NAN], [0.70, 0.80, NAN], [0.50, 0.85, 1.00]],
    [[1.00, NAN, NAN], [0.40, 0.60, NAN], [0.10, 0.20, 0.30]],
  ]
)


def test_average_accuracy_is_mean_of_last_row():
  np.testing.assert_allclose(metrics.average_accuracy(MATRIX), [2.35 / 3, 0.2])


def test_average_incremental_accuracy_is_the_mean_of_means_so_far():
  # run 0: 0.9, 0.75, 2.35 / 3; run 1: 1.0, 0.5, 0.2
  expected = [(0.9 + 0.75 + 2.35 / 3) / 3, 1.7 / 3]
  found = metrics.average_incremental_accuracy(MATRIX)
  np.testing.assert_allclose(found, expected)
  ahead = np.where(np.isnan(MATRIX), 0.5, MATRIX)  # tasks to come do not count
  np.testing.assert_allclose(metrics.average_incremental_accuracy(ahead), expected)


def test_learning_accuracy_is_the_mean_of_the_diagonal():
  np.testing.assert_allclose(metrics.learning_accuracy(MATRIX), [0.9, 1.9 / 3])


def test_forgetting_is_fall_from_best_earlier_row():
  # run 0: (0.9 - 0.5) and (0.8 - 0.85); run 1: (1 - 0.1) and (0.6 - 0.2)
  np.testing.assert_allclose(metrics.forgetting(MATRIX), [0.175, 0.65])


def test_forgetting_takes_the_best_row_not_the_diagonal():
  matrix = np.array([[[0.5, NAN, NAN], [0.9, 0.7, NAN], [0.3, 0.6, 1.0]]])
  np.testing.assert_allclose(metrics.forgetting(matrix), [0.35])
  np.testing.assert_allclose(metrics.backward_transfer(matrix), [-0.15])


def test_backward_transfer_is_change_since_learned():
  # run 0: (0.5 - 0.9) and (0.85 - 0.8); run 1: (0.1 - 1.0) and (0.2 - 0.6)
  np.testing.assert_allclose(metrics.backward_transfer(MATRIX), [-0.175, -0.65])


def test_forward_transfer_reads_the_superdiagonal():
  masked = MATRIX.copy()
  masked[:, 0, 1], masked[:, 1, 2] = [0.6, 0.5], [0.7, 0.3]
  untrained = np.array([[NAN, 0.5, 0.4], [NAN, 0.5, 0.5]])
  expected = [(0.1 + 0.3) / 2, (0.0 - 0.2) / 2]
  np.testing.assert_allclose(metrics.forward_transfer(masked, untrained), expected)


def test_single_task_has_accuracy_and_no_transfer():
  matrix = np.array([[[0.9]], [[0.7]]])
  np.testing.assert_allclose(metrics.average_accuracy(matrix), [0.9, 0.7])
  for values in (
    metrics.forgetting(matrix),
    metrics.backward_transfer(matrix),
    metrics.forward_transfer(matrix, matrix[:, 0]),
  ):
    assert values.shape == (2,) and np.isnan(values).all()


def test_last_row_alone_has_accuracy_and_no_transfer():
  matrix = np.full((2, 3, 3), NAN)
  matrix[:, -1] = MATRIX[:, -1]
  np.testing.assert_allclose(metrics.average_accuracy(matrix), [2.35 / 3, 0.2])
  assert np.isnan(metrics.average_incremental_accuracy(matrix)).all()
  assert np.isnan(metrics.learning_accuracy(matrix)).all()
  assert np.isnan(metrics.forgetting(matrix)).all()
  assert np.isnan(metrics.backward_transfer(matrix)).all()
  assert np.isnan(metrics.forward_transfer(matrix, np.zeros((2, 3)))).all()


def test_a_missing_earlier_row_leaves_no_forgetting():
  """The best accuracy may have been the one that nobody looked at."""
  matrix = MATRIX.copy()
  matrix[0, 1] = NAN
  assert np.isnan(metrics.forgetting(matrix)).tolist() == [True, False]


def test_missing_last_row_leaves_no_average():
  matrix = MATRIX.copy()
  matrix[0, -1] = NAN
  assert np.isnan(metrics.average_accuracy(matrix)).tolist() == [True, False]
  assert np.isnan(metrics.forgetting(matrix)).tolist() == [True, False]


def test_mean_sem_uses_the_sample_deviation():
  # deviations -1, 0, 1: variance 2 / (3 - 1) = 1, SEM 1 / sqrt(3)
  summary = metrics.mean_sem(np.array([1.0, 2.0, 3.0]))
  assert summary == pytest.approx((2.0, 1 / np.sqrt(3), 3))


def test_mean_sem_of_one_value_has_no_sem():
  assert metrics.mean_sem(np.array([0.25])) == metrics.Summary(0.25, None, 1)


def test_mean_sem_refuses_no_values():
  with pytest.raises(ValueError, match="at least one value"):
    metrics.mean_sem(np.array([]))


def test_predicted_label_share_sums_columns():
  confusion = np.array([[[3, 1], [1, 5]], [[0, 2], [0, 2]], [[0, 0], [0, 0]]])
  expected = [[0.4, 0.6], [0.0, 1.0], [0.0, 0.0]]
  np.testing.assert_allclose(metrics.predicted_label_share(confusion), expected)


def test_normalise_rows_keeps_empty_rows_at_zero():
  confusion = np.array([[3, 1], [0, 0]])
  expected = [[0.75, 0.25], [0.0, 0.0]]
  np.testing.assert_allclose(metrics.normalise_rows(confusion), expected)


def test_worst_accuracies_by_hand():
  """Three tasks, five evaluations of two runs; task 2 ends at the third of them."""
  accuracy = np.array(
    [
      [[0.9, NAN, NAN], [0.8, NAN, NAN]],  # the end of task 1: no low point yet
      [[0.2, 0.1, NAN], [0.7, 0.3, NAN]],
      [[0.4, 0.9, NAN], [0.6, 0.8, NAN]],  # the end of task 2
      [[0.3, 0.5, 0.1], [0.5, 0.2, 0.1]],
      [[0.6, 0.7, 1.0], [0.7, 0.4, 0.9]],
    ]
  )
  learned = np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 0]], bool)
  lowest = np.array([(0.2 + 0.5) / 2, (0.5 + 0.2) / 2])
  np.testing.assert_allclose(metrics.min_accuracy(accuracy, learned), lowest)
  wanted = np.array([1.0, 0.9]) / 3 + 2 / 3 * lowest
  np.testing.assert_allclose(metrics.worst_case_accuracy(accuracy, learned), wanted)
  alone = accuracy[:, :, :1], learned[:, :1]
  assert np.isnan(metrics.min_accuracy(*alone)).all()
  assert np.isnan(metrics.worst_case_accuracy(*alone)).all()


def test_auroc_is_the_share_of_pairs_in_order():
  rng = np.random.default_rng(0)
  inside, outside = rng.integers(0, 9, 70), rng.integers(3, 12, 50)  # with ties
  higher = outside[None, :] > inside[:, None]
  same = outside[None, :] == inside[:, None]
  wanted = (higher + same / 2).mean()
  assert metrics.auroc(inside, outside) == pytest.approx(wanted, abs=1e-12)
  assert metrics.auroc(-inside, -outside) == pytest.approx(1 - wanted, abs=1e-12)
  assert metrics.auroc(np.zeros(3), np.zeros(2)) == 0.5


def test_fpr95_is_what_passes_where_95_percent_are_accepted():
  inside = np.arange(1.0, 21.0)  # 19 of 20 lie at 19 or below
  outside = np.array([0.0, 18.5, 19.0, 19.5, 30.0])
  assert metrics.fpr95(inside, outside) == pytest.approx(3 / 5)
  assert metrics.fpr95(np.arange(1.0, 22.0), outside) == pytest.approx(4 / 5)  # at 20
  assert metrics.acceptance_limit(inside, 0.5) == 10.0


def test_calibration_error_by_hand():
  confidence = np.array([0.95, 0.96, 0.99, 0.3, 0.32, 1 / 3, 1.0])
  correct = np.array([1, 1, 0, 0, 1, 0, 1], bool)
  # Bins (14/15, 1] and (4/15, 5/15]: 4 of them, 3 of which are right, and 3 with one.
  wanted = abs(3 - 3.9) / 7 + abs(1 - (0.62 + 1 / 3)) / 7
  found = metrics.calibration_error(confidence, correct)
  assert found == pytest.approx(wanted, abs=1e-12)
  # Apart, what the bins had let cancel out counts in full.
  one = metrics.calibration_error(np.array([0.5, 0.5]), np.array([True, False]))
  two = metrics.calibration_error(np.array([0.4, 0.6]), np.array([True, False]))
  assert one == 0 and two == pytest.approx(0.6)
