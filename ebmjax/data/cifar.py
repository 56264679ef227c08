"""CIFAR-10 and CIFAR-100: colour 32x32 images, normalised by channel."""

from ebmjax.data import cifar_files
from ebmjax.data.arrays import Pins
from ebmjax.data.spec import DatasetSpec, Download

_CIFAR10_NAMES = "airplane automobile bird cat deer dog frog horse ship truck"
_CIFAR100_NAMES = (
  "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge "
  "bus butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud "
  "cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish forest fox "
  "girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster "
  "man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter "
  "palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit "
  "raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake "
  "spider squirrel streetcar sunflower sweet_pepper table tank telephone television "
  "tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm"
)

CIFAR10 = DatasetSpec(
  name="cifar10",
  title="CIFAR-10",
  image_shape=cifar_files.IMAGE_SHAPE,
  num_classes=10,
  class_names=tuple(_CIFAR10_NAMES.split()),
  sources=("tfds", "files"),
  train=Pins(
    size=50000,
    x="51c15db370c309e9aa60cf71f835f2ba0f430ea3653f7512d833c9a8e90e0d65",
    y="1a4c5fb4e1cab2caa8eee134c093de84d620899e907756e71736fb7b0d4ab554",
    rows="6a3b2c04d0a79ce272dcdacaf0bc440275db5a8cbe3717521a28fada2ea0d2ed",
  ),
  test=Pins(
    size=10000,
    x="fc19aa23c64482c6def2138377986c67b6b3a50f8e8c4c6a759b296dc751fa64",
    y="987e01129ceec0098f1e9d9404cff9fa82ad3d15383a61e8ec60ff20ffe6db40",
    rows="65a6ffe079453e514083f99356b35e02cbfd581b4951e3937fae188974b79f39",
  ),
  url="https://www.cs.toronto.edu/~kriz/",
  downloads={
    "cifar-10-binary.tar.gz": Download(
      170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"
    ),
  },
  layouts=cifar_files.layouts(cifar_files.CIFAR10),
  mean=(0.4914, 0.4822, 0.4465),
  std=(0.2023, 0.1994, 0.2010),
)

# Only `rows` is pinned: it was computed from a lossless copy of all images, sorted by
# class, which has lost the official order. So the content of every source is verified
# bit for bit, but the order only by the checksum of the download.
CIFAR100 = DatasetSpec(
  name="cifar100",
  title="CIFAR-100",
  image_shape=cifar_files.IMAGE_SHAPE,
  num_classes=100,  # the fine labels
  class_names=tuple(_CIFAR100_NAMES.split()),
  sources=("tfds", "files"),
  train=Pins(
    size=50000,
    x="",
    y="",
    rows="640c97a4012a8aebfcaf57fd82a33dd43b37d2e397a02cb9b0a3d89e6d6d936d",
  ),
  test=Pins(
    size=10000,
    x="",
    y="",
    rows="a6a97df7b61bc7420bc44268696e8963d33129bc050978f2a63d8fe3420989fa",
  ),
  url="https://www.cs.toronto.edu/~kriz/",
  downloads={
    "cifar-100-binary.tar.gz": Download(
      168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"
    ),
  },
  layouts=cifar_files.layouts(cifar_files.CIFAR100),
  mean=(0.5071, 0.4865, 0.4409),
  std=(0.2673, 0.2564, 0.2761),
)
