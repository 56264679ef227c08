"""MNIST and Fashion-MNIST: grey 28x28 images in idx files, inputs from 0 to 1."""

from ebmjax.data import embedded, idx
from ebmjax.data.arrays import Pins
from ebmjax.data.spec import DatasetSpec, Download

_FASHION = (
  *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt"),
  *("Sneaker", "Bag", "Ankle boot"),
)

MNIST = DatasetSpec(
  name="mnist",
  title="MNIST",
  image_shape=(28, 28),
  num_classes=10,
  class_names=tuple("0123456789"),
  mean=(0.0,),
  std=(1.0,),
  sources=("tfds", "files", "embedded"),
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
  mirrors=("https://ossci-datasets.s3.amazonaws.com/mnist/",),
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
  layouts=(idx.LAYOUT,),
  embedded=embedded.load,
)

FASHION_MNIST = DatasetSpec(
  name="fashion_mnist",
  title="Fashion-MNIST",
  image_shape=(28, 28),
  num_classes=10,
  class_names=_FASHION,
  mean=(0.0,),
  std=(1.0,),
  sources=("tfds", "files"),
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
  mirrors=(
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
  ),
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
  layouts=(idx.LAYOUT,),
)
