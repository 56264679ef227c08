"""A slim ResNet-18, and the linear classifier over it."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import Array

from ebmjax.networks.cifar10 import WANTS_IMAGES, is_image
from ebmjax.networks.conv import Conv, compiler_options
from ebmjax.networks.heads import select
from ebmjax.networks.initialisers import dense, kernel
from ebmjax.networks.module import from_module
from ebmjax.networks.spec import ConvForm, Init, Inputs, NetworkSpec
from ebmjax.networks.trunked import with_trunk
from ebmjax.types import Network

CHANNELS = (20, 40, 80, 160)  # of the four stages
STRIDES = (1, 2, 2, 2)
FEATURES = CHANNELS[-1]


class SlimResNet18(nn.Module):
  """Maps images [B, H, W, C] to features [B, 160], the spatial mean of the last stage.

  The form of Lopez-Paz and Ranzato (2017): He et al.'s ResNet-18 with 20 channels
  instead of 64 and a first convolution of 3x3. With `batch_statistics` the norms use
  those of the batch and update their running ones.
  """

  conv_form: str = "auto"
  init_style: str = "pytorch"

  @nn.compact
  def __call__(self, x: Array, batch_statistics: bool = False) -> Array:
    def norm(x: Array) -> Array:
      # PyTorch's momentum 0.1 is 0.9 here.
      return nn.BatchNorm(not batch_statistics, momentum=0.9, epsilon=1e-5)(x)

    def conv(x: Array, channels: int, stride: int) -> Array:
      sizes = (x.shape[-1], channels, stride, 1)
      return Conv(*sizes, self.conv_form, self.init_style, use_bias=False)(x)

    def shortcut(x: Array, channels: int, stride: int) -> Array:
      # A convolution of 1x1 is a dense layer over the channels of each place.
      layer = nn.Dense(channels, use_bias=False, kernel_init=kernel(self.init_style))
      return norm(layer(x[:, ::stride, ::stride]))

    def block(x: Array, channels: int, stride: int) -> Array:
      y = jax.nn.relu(norm(conv(x, channels, stride)))
      y = norm(conv(y, channels, 1))
      same = stride == 1 and x.shape[-1] == channels
      return jax.nn.relu(y + (x if same else shortcut(x, channels, stride)))

    x = jax.nn.relu(norm(conv(x, CHANNELS[0], 1)))
    for channels, stride in zip(CHANNELS, STRIDES, strict=True):
      x = block(block(x, channels, stride), channels, 1)
    return jnp.mean(x, axis=(1, 2))


class LinearClassifier(nn.Module):
  """A softmax classifier without hidden layers: E(x, y) = -logit_y(x)."""

  num_inputs: int
  num_classes: int
  init_style: str = "pytorch"

  def setup(self) -> None:
    self.head = dense(self.num_classes, self.num_inputs, self.init_style)

  def __call__(self, x: Array, labels: Array) -> Array:
    """Returns energies [B, K] for labels [B, K], or [B, L] for labels [L]."""
    return select(-self.head(x), labels)

  def features(self, x: Array) -> Array:
    """Returns x [B, F] itself."""
    return x


def classifier_resnet18(
  inputs: Inputs, *, conv_form: ConvForm = "auto", init: Init = "pytorch"
) -> Network:
  """Builds the classifier of GSS-Greedy's authors on CIFAR-10."""
  head = LinearClassifier(FEATURES, inputs.num_classes, init)
  return with_trunk(
    from_module(head, (FEATURES,), inputs.num_classes),
    SlimResNet18(conv_form, init),
    inputs,
    mode="finetune",
    weights=None,
  )


SBC_RESNET18 = NetworkSpec(
  classifier_resnet18,
  title="ResNet-18",
  energy=False,
  takes_rows=False,
  accepts=is_image,
  wants=WANTS_IMAGES,
  num_features=lambda config: FEATURES,
  compiler_options=compiler_options,
)
