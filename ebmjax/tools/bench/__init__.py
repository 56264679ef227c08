"""Measures speed, memory and where a run's time goes.

Training, in steps per second. Ours is the whole step: gathering the batch, permuting or
augmenting it, drawing negatives, forward, backward, Adam. The peer (--peer) is a bare
PyTorch step of the same mathematics (launch/torch_peer), with batches made in advance,
in two forms: `pass per label` runs everything after the trunk once for each label;
`shared` computes what precedes the first gate only once. Each form is timed eager and
compiled (torch.compile) and, for images, in both of PyTorch's memory formats; the table
shows the fastest combination, with all of them below it. CIFAR-100 with fixed
statistics starts from features that are computed once; with batch statistics or without
boundaries, it starts from images, through a frozen trunk of random weights.

Inference, in images per second: the energies of all labels and the lowest of them, in
blocks of config.eval.batch_size images that are already on the device, permuted, or
turned into features (CIFAR-100). One table divides our EBM's time by our classifier's.
The other compares our EBM with a plain form that passes one label at a time through
whole layers, in JAX (a loop over labels in one compiled program) and, with --peer, in
PyTorch without gradients, each in both forms. Fast programs get more images than slow
ones; all rates are per image.

Seeds: 1, 4 and 10 seeds in one process, with every driver. Evaluation: the whole test
set, all tasks, all labels. Estimator: `partial_fit` one batch at a time, compared with
the runner's steps of the same training, and `predict`, compared with an evaluation.
Share: the rate of the step's matrix products, counted from its trace, as a share of the
best rate of a large square product and of the step's own products alone. Roofline: a
step's FLOPs and bytes, computed from its program, and what they allow on two GPUs.
Runs: whole processes of ebmjax.main with an empty and a filled compilation cache; the
time to the first step counts from the start of the process: it is the time to the first
chunk, minus the chunk's other steps. Curves: the cost as the number of labels, the
batch, the width or the number of seeds grows.

Images and weights are random, which does not affect speed. Machines are noisy, so read
the ratios rather than the rates: they come from rounds that alternate.

On two CPU cores, expect all sections to take about three hours with --peer and two
without, --curves half an hour, and --quick at most a minute per case.
"""
