"""Measures the speed of training and of inference: python -m ebmjax.bench

Training, in steps per second. Ours is the whole step: gathering the batch, permuting or
augmenting it, drawing negatives, forward, backward, Adam. The peer (--peer) is a bare
PyTorch step of the same mathematics (launch/torch_peer.py) whose batches are made
beforehand, written in two forms: `pass per label` runs all that follows the trunk once
for each label; `shared` computes what stands before the first gate once. Where images
come in, each form is timed in both of PyTorch's memory formats, and the faster one
stands in the table. CIFAR-100 with fixed statistics starts from features computed once,
with batch statistics from images, through a frozen trunk of random weights.

Inference, in images per second: the energies of all labels and the lowest of them, in
blocks of config.eval.batch_size images that already lie on the device, permuted, or
turned into features (CIFAR-100). Two tables: the EBM's time over the classifier's, both
ours; and ours against the plain form that takes one label at a time through whole
layers, in JAX (a loop over labels inside one compiled program) and, with --peer, in
PyTorch without gradients, each in both forms. A quick one is given more images than a
slow one: all rates are per image.

Images and weights are random, speed does not look at them. Machines are noisy: read the
ratios, which come from rounds that alternate, not the rates.
"""
