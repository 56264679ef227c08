"""The official files of CIFAR: every form is read, and every damage is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from ebmjax import data
from ebmjax.data import cifar_files
from ebmjax.errors import DataError
from tests.data.cifar import NAMES, STYLES, TinyCifar, make_cifar, pack_tar, write

KINDS = ("binary", "python")


@pytest.fixture(params=NAMES)
def tiny(request, monkeypatch) -> TinyCifar:
  """Returns a small set, registered as each of the two sets in turn."""
  made = make_cifar(request.param)
  monkeypatch.setitem(data.DATASETS, request.param, made.info)
  return made


@pytest.fixture
def load(tiny, config):
  """Returns a function from a folder to the set that its files hold."""
  return lambda folder, **changes: data.load(
    config("files", folder, name=tiny.info.name, **changes)
  )


def source_of(tiny: TinyCifar, kind: str) -> str:
  """Returns what a full set says of its source."""
  order = "" if tiny.info.train.x else ", in an order that is not verified"
  return f"{tiny.info.name}, full, official {kind}{order}"


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_reads_the_files(tiny, load, tmp_path: Path, kind, inside):
  place = tmp_path / tiny.form.folders[kind] if inside else tmp_path
  write(place, tiny.files(kind))
  dataset = load(tmp_path, require_full=True)
  tiny.assert_holds(dataset)
  assert dataset.full
  assert dataset.num_classes == tiny.info.num_classes
  assert dataset.source == source_of(tiny, f"{kind} files")
  tiny.assert_holds(load(place))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_reads_the_archives(tiny, load, tmp_path: Path, kind, packed):
  content = tiny.archive(kind)
  name = f"{tiny.form.archive}-{kind}.tar"
  name, content = (
    (name + ".gz", content) if packed else (name, gzip.decompress(content))
  )
  dataset = load(write(tmp_path, {name: content}), require_full=True)
  tiny.assert_holds(dataset)
  assert dataset.source == source_of(tiny, f"{kind} archive")
  assert [path.name for path in tmp_path.iterdir()] == [name], "nothing is unpacked"


@pytest.mark.parametrize("style", STYLES)
def test_reads_pickles_of_every_age(tiny, load, tmp_path: Path, style):
  tiny.assert_holds(load(write(tmp_path, tiny.python(style))))


def test_reads_an_npz(tiny, load, tmp_path: Path):
  keys = {"x_train": "train_x", "y_train": "train_y"}
  keys |= {"x_test": "test_x", "y_test": "test_y"}
  arrays = {key: tiny.arrays[field] for key, field in keys.items()}
  np.savez(tmp_path / f"{tiny.info.name}.npz", **arrays)
  dataset = load(tmp_path, require_full=True)
  tiny.assert_holds(dataset)
  assert dataset.source == source_of(tiny, "images in an npz file")
  arrays["x_train"] = arrays["x_train"].transpose(0, 3, 1, 2)
  np.savez(tmp_path / f"{tiny.info.name}.npz", **arrays)
  with pytest.raises(DataError, match=r"shape \(32, 32, 3\), but holds uint8 of shape"):
    load(tmp_path)


def test_the_most_complete_form_goes_first(tiny, load, tmp_path: Path):
  write(tmp_path, tiny.binary())
  (tmp_path / f"{tiny.form.test}.bin").unlink()
  archive = tmp_path / f"{tiny.form.archive}-python.tar.gz"
  archive.write_bytes(tiny.archive("python"))
  assert load(tmp_path).source == source_of(tiny, "python archive")
  write(tmp_path / tiny.form.folders["binary"], tiny.binary())
  assert load(tmp_path).source == source_of(tiny, "binary files")


@pytest.mark.parametrize("kind", KINDS)
def test_missing_files_are_named(tiny, load, tmp_path: Path, kind, sentence):
  with pytest.raises(DataError) as caught:
    load(tmp_path)
  text = sentence(caught)
  assert f"lacks {tiny.form.archive}-binary.tar (plain or .gz)" in text
  assert tiny.info.url in text
  *others, last = tiny.files(kind)
  write(tmp_path, tiny.files(kind))
  (tmp_path / last).unlink()
  with pytest.raises(DataError) as caught:
    load(tmp_path)
  text = sentence(caught)
  assert (
    f"lacks {last} (plain or .gz): unpack {tiny.form.archive}-{kind}.tar.gz" in text
  )
  assert not any(f"{name}," in text for name in others)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", [0, -1])
def test_truncated_and_too_long(tiny, load, tmp_path: Path, kind, at, sentence):
  files = tiny.files(kind)
  name = list(files)[at]
  labels = len(tiny.form.labels)
  records = files[name][: -(labels + 3072)], files[name] + files[name][: labels + 3072]
  for content, problem in (
    (files[name][:-1], "truncated"),
    (b"", "truncated"),
    (files[name] + b"\0", "too long"),
    *(
      (zip(records, ("truncated", "too long"), strict=True)) if kind == "binary" else ()
    ),
  ):
    write(tmp_path, files | {name: content})
    with pytest.raises(DataError) as caught:
      load(tmp_path)
    text = sentence(caught)
    assert text.startswith(f"{tmp_path / name} is")
    assert problem in text
    assert "download it again" in text


def test_labels_out_of_range_name_the_file(tiny, load, tmp_path: Path, sentence):
  width = len(tiny.form.labels) + 3072
  for position, classes in enumerate(tiny.form.labels.values()):
    files = tiny.binary()
    name = list(files)[-2]
    content = bytearray(files[name])
    content[width + position] = classes
    write(tmp_path, files | {name: bytes(content)})
    with pytest.raises(DataError) as caught:
      load(tmp_path)
    problem = f"{tmp_path / name} must hold labels from 0 to {classes - 1}, but"
    assert problem in sentence(caught)


@pytest.mark.parametrize("position", ["label", "pixel"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_other_content_is_damaged(
  tiny, load, tmp_path: Path, split, position, sentence
):
  field = f"{split}_{'y' if position == 'label' else 'x'}"
  values = tiny.arrays[field]
  values.flat[5] = (values.flat[5] + 1) % 10
  write(tmp_path, tiny.binary())
  with pytest.raises(DataError) as caught:
    load(tmp_path)
  text = sentence(caught)
  assert "does not match the official checksum" in text
  name = tiny.form.test if split == "test" else tiny.form.train[0]
  assert str(tmp_path / f"{name}.bin") in text


def test_order_is_verified_where_it_is_known(tiny, load, tmp_path: Path):
  for field in ("train_x", "train_y"):
    tiny.arrays[field] = tiny.arrays[field][::-1]
  write(tmp_path, tiny.binary())
  if tiny.info.name == "cifar100":
    tiny.assert_holds(load(tmp_path, require_full=True))
    return
  with pytest.raises(DataError, match="official checksum"):
    load(tmp_path)


@pytest.mark.parametrize(
  ("changes", "problem"),
  [
    ({"data": [1, 2]}, "but holds list of shape ()"),
    ({"data": np.zeros((3, 3072), np.uint8)}, "but holds uint8 of shape (3, 3072)"),
    ({"data": np.zeros((6, 3072), np.int64)}, "but holds int64 of shape (6, 3072)"),
    ({"labels": [1, 2, 3]}, "holds 6 images, but"),
    ({"labels": [-1] * 6}, "holds labels from -1 to -1"),
    ({"labels": [10] * 6}, "labels from 0 to 9, but holds labels from 10 to 10"),
    ({"labels": [2**70] * 6}, "must hold one integer per image"),
    ({"labels": [0.5] * 6}, "must hold one integer per image"),
    ({"labels": "abcdef"}, "must hold one integer per image"),
    ({"labels": [[1], [1, 2]]}, "it holds a list of lists"),
    ({"labels": {}}, "must hold one integer per image"),
  ],
)
def test_invalid_values_of_a_pickle(changes, problem, sentence):
  tiny = make_cifar("cifar10")
  content = tiny.python("protocol2", **changes)[tiny.form.test]
  with pytest.raises(DataError) as caught:
    cifar_files.parse_python(tiny.form, content, "batch", 6)
  assert problem in sentence(caught)


def test_missing_values_of_a_pickle(sentence):
  content = make_cifar("cifar10").python()["test_batch"]
  with pytest.raises(DataError) as caught:
    cifar_files.parse_python(cifar_files.CIFAR100, content, "test", 6)
  assert "test lacks coarse_labels, fine_labels:" in sentence(caught)


def test_damaged_archives(tiny, load, tmp_path: Path, sentence):
  content = tiny.archive("binary")
  path = tmp_path / f"{tiny.form.archive}-binary.tar.gz"
  middle = len(content) // 2
  flipped = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
  plain = gzip.decompress(content)
  bad = (content[:middle], flipped, plain[: len(plain) // 2], b"", b"<html>sign in")
  for damaged in bad:
    path.write_bytes(damaged)
    with pytest.raises(DataError) as caught:
      load(tmp_path)
    assert str(path) in sentence(caught)


def test_archive_that_lacks_a_file_or_hides_it(tiny, load, tmp_path: Path, sentence):
  files = tiny.binary()
  last = list(files)[-1]
  path = tmp_path / f"{tiny.form.archive}-binary.tar.gz"
  for other in (last.upper(), f"{last}/inside"):
    changed = {name: files[name] for name in list(files)[:-1]} | {other: files[last]}
    path.write_bytes(pack_tar(changed, "folder"))
    with pytest.raises(DataError) as caught:
      load(tmp_path)
    assert f"{path} must be the official archive, but lacks {last}:" in sentence(caught)


def test_file_of_an_archive_is_named(tiny, load, tmp_path: Path, sentence):
  name = f"{tiny.form.test}.bin"
  path = tmp_path / f"{tiny.form.archive}-binary.tar.gz"
  path.write_bytes(tiny.archive("binary", **{name: tiny.binary()[name][:-9]}))
  with pytest.raises(DataError) as caught:
    load(tmp_path)
  assert sentence(caught).startswith(f"{path}[{name}] is truncated")


def test_paths_of_an_archive_are_never_used(tiny, load, tmp_path: Path):
  folder = tmp_path / "a" / "b"
  content = pack_tar(tiny.binary(), "../..")
  write(folder, {f"{tiny.form.archive}-binary.tar.gz": content})
  tiny.assert_holds(load(folder))
  assert [path.name for path in tmp_path.iterdir()] == ["a"]
