"""Measures speed, memory and where a run's time goes: python -m ebmjax.bench

Training, in steps per second. Ours is the whole step: gathering the batch, permuting or
augmenting it, drawing negatives, forward, backward, Adam. The peer (--peer) is a bare
PyTorch step of the same mathematics (launch/torch_peer) whose batches are made
beforehand, written in two forms: `pass per label` runs all that follows the trunk once
for each label; `shared` computes what stands before the first gate once. Each form is
timed eager and compiled (torch.compile), and, where images come in, in both of
PyTorch's memory formats; the fastest way stands in the table, all of them below it.
CIFAR-100 with fixed statistics starts from features computed once, with batch
statistics, and without boundaries, from images, through a frozen trunk of random
weights.

Inference, in images per second: the energies of all labels and the lowest of them, in
blocks of config.eval.batch_size images that already lie on the device, permuted, or
turned into features (CIFAR-100). Two kinds of table: the EBM's time over the
classifier's, both ours; and ours against the plain form that takes one label at a time
through whole layers, in JAX (a loop over labels inside one compiled program) and, with
--peer, in PyTorch without gradients, each in both forms. A quick one is given more
images than a slow one: all rates are per image.

Seeds: 1, 4 and 10 seeds in one process, with every driver. Evaluation: the whole test
set, all tasks, all labels. Estimator: `partial_fit` a batch at a time beside the
runner's steps of the same training, and `predict` beside an evaluation. Share: the
step's matrix products, counted from its trace, against the best rate of a large square
product and of the step's own products alone. Roofline: a step's FLOPs and bytes, and
what they allow on two GPUs, computed from its program. Runs: whole processes of
ebmjax.main with an empty and a filled compilation cache; the time to the first step
counts from the start of the process: it is that to the first chunk, less the chunk's
other steps. Curves: the cost against labels, batch, width and seeds.

Images and weights are random, speed does not look at them. Machines are noisy: read the
ratios, which come from rounds that alternate, not the rates.

On two CPU cores all sections are expected to take about three hours with --peer, two
without, and --curves half an hour; --quick a minute or less a case.
"""
