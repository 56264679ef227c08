"""The table of data sets: shapes, official sizes, addresses and checksums.

A new data set is one row here. A set whose official files are not idx files also needs
`layouts`, which tell the names of its files and how to read them.
"""

from typing import NamedTuple

from ebmjax.data import cifar, idx
from ebmjax.data.arrays import Pins
from ebmjax.data.layout import Layout
from ebmjax.errors import DataError


class Download(NamedTuple):
  """An official file as its server has it, still packed."""

  size: int  # bytes
  sha256: str


class DatasetInfo(NamedTuple):
  """What there is to know about a data set before any of it is read."""

  name: str
  image_shape: tuple[int, ...]  # (H, W) or (H, W, 3)
  num_classes: int
  train: Pins
  test: Pins
  url: str  # the folder that `downloads` are in
  downloads: dict[str, Download]  # by file name
  layouts: tuple[Layout, ...] = (idx.LAYOUT,)  # the forms its files may have
  mean: tuple[float, ...] = (0.0,)  # of each channel, of values from 0 to 1
  std: tuple[float, ...] = (1.0,)
  generated: bool = False  # nothing is stored: the network draws the images

  @property
  def downloaded(self) -> Layout:
    """Returns the form that the downloads have."""
    names = {name.removesuffix(".gz") for name in self.downloads}
    return next(layout for layout in self.layouts if set(layout.names) == names)

  @property
  def by_hand(self) -> str:
    """Returns how to get the set without our help, as part of a sentence."""
    return (
      f"download {', '.join(self.downloads)} from {self.url} into a folder and set "
      "config.data.source=files and config.data.dir to it"
    )


_MNIST = DatasetInfo(
  name="mnist",
  image_shape=(28, 28),
  num_classes=10,
  train=Pins(
    size=60000,
    x="ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    y="65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    rows="54e1ab866c9484947dd4821c52bb7a43938f555d6b046be6af55247f8e6ffc64",
  ),
  test=Pins(
    size=10000,
    x="0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    y="ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    rows="97b756d55950f1841ebd48df7379b9b2fc87a10d63e08d6213dad41d564e8508",
  ),
  url="https://storage.googleapis.com/cvdf-datasets/mnist/",
  downloads={
    "train-images-idx3-ubyte.gz": Download(
      9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": Download(
      28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": Download(
      1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "t10k-labels-idx1-ubyte.gz": Download(
      4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
  },
)

_FASHION_MNIST = DatasetInfo(
  name="fashion_mnist",
  image_shape=(28, 28),
  num_classes=10,
  train=Pins(
    size=60000,
    x="c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    y="bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    rows="fb88a2f5c1b590c907f860b47803d006e4fa7b276cdb551799af9d443accdff7",
  ),
  test=Pins(
    size=10000,
    x="5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    y="0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    rows="0b381379398a0943a88bf3864ff3f5177903dcf178030b4b74c495294b38fa7c",
  ),
  url="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
  downloads={
    "train-images-idx3-ubyte.gz": Download(
      26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
    ),
    "train-labels-idx1-ubyte.gz": Download(
      29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
    ),
    "t10k-images-idx3-ubyte.gz": Download(
      4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
    ),
    "t10k-labels-idx1-ubyte.gz": Download(
      5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
    ),
  },
)

_CIFAR10 = DatasetInfo(
  name="cifar10",
  image_shape=cifar.IMAGE_SHAPE,
  num_classes=10,
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
  layouts=cifar.layouts(cifar.CIFAR10),
  mean=(0.4914, 0.4822, 0.4465),
  std=(0.2023, 0.1994, 0.2010),
)

# Only `rows` is pinned: it was computed from a lossless copy of all the images that is
# sorted by class, which cannot tell the official order. So the content is verified bit
# for bit from every source, but the order only by the checksum of the download.
_CIFAR100 = DatasetInfo(
  name="cifar100",
  image_shape=cifar.IMAGE_SHAPE,
  num_classes=100,  # the fine labels
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
  layouts=cifar.layouts(cifar.CIFAR100),
  mean=(0.5071, 0.4865, 0.4409),
  std=(0.2673, 0.2564, 0.2761),
)

# Of the capacity study: as many images as are asked for, nothing to download.
_NOISE = DatasetInfo(
  name="noise",
  image_shape=cifar.IMAGE_SHAPE,
  num_classes=10,
  train=Pins(size=0, x="", y="", rows=""),
  test=Pins(size=0, x="", y="", rows=""),
  url="",
  downloads={},
  layouts=(),
  generated=True,
)

DATASETS: dict[str, DatasetInfo] = {
  info.name: info for info in (_MNIST, _FASHION_MNIST, _CIFAR10, _CIFAR100, _NOISE)
}


def find(name: str) -> DatasetInfo:
  """Returns the row of a data set."""
  if name not in DATASETS:
    raise DataError(
      f"data.name must be one of {', '.join(DATASETS)}, but is {name!r}: choose one of "
      "them."
    )
  return DATASETS[name]
