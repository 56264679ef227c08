"""Command lines with something wrong, and what the one sentence about each says."""

from tests.helpers import PERMUTED, ROOT, SPLIT

SMOKE = f"--config={SPLIT}:smoke"
CIFAR10 = f"--config={ROOT / 'configs' / 'cifar10.py'}"
CAPACITY = f"--config={ROOT / 'configs' / 'capacity.py'}:smoke"


def keys(*given: str) -> list[str]:
  return [SMOKE, *(f"--config.{key}" for key in given)]


# Each: the arguments, and what the sentence must say.
FAULTS = {
  "unknown key": (
    keys("stream.batchsize=3"),
    ["config.stream.batchsize is unknown", "did you mean config.stream.batch_size?"],
  ),
  "unknown key, its group left out": (
    keys("learning_rat=0.1"),
    ["did you mean config.optimiser.learning_rate?"],
  ),
  "unknown key like no other": (
    keys("zzzzqqqq=1"),
    ["config.zzzzqqqq is unknown; see --help for all keys."],
  ),
  "a key of a leaf": (keys("seeds.x=1"), ["config.seeds.x is unknown"]),
  "a group for a key": (
    keys("stream=split"),
    ["config.stream is a group of keys, such as config.stream.batch_size; see --help"],
  ),
  "text for an integer": (
    keys("seeds=many"),
    ["config.seeds=many is not a whole number; see --help."],
  ),
  "fraction for an integer": (
    keys("seeds=2.5"),
    ["config.seeds=2.5 is not a whole number; see --help."],
  ),
  "text for a number": (
    keys("optimiser.learning_rate=fast"),
    ["config.optimiser.learning_rate=fast is not a number; see --help."],
  ),
  "text for a truth value": (
    keys("network.skip=perhaps"),
    ["config.network.skip=perhaps is not True or False; see --help."],
  ),
  "value missing": (keys("seeds"), ["config.seeds", "see --help."]),
  "objective": (
    keys("objective=contrastve"),
    [
      "config.objective='contrastve' is unknown; did you mean 'contrastive'?",
      "The choices are contrastive, difference, likelihood, joint_pairs, "
      "joint_triples, ce.",
    ],
  ),
  "objective like no other": (
    keys("objective=zzz"),
    ["config.objective='zzz' is unknown; the choices are contrastive,"],
  ),
  "negatives": (
    keys("negatives=one_of_tsk"),
    ["did you mean 'one_of_task'? The choices are auto, one_of_task,"],
  ),
  "data set": (keys("data.name=mnits"), ["did you mean 'mnist'?"]),
  "source": (keys("data.source=file"), ["did you mean 'files'?"]),
  "stream": (keys("stream.name=permute"), ["did you mean 'permuted'?"]),
  "setting": (
    keys("stream.setting=boundaryfree"),
    ["did you mean 'boundary_free'?"],
  ),
  "scenario": (keys("stream.scenario=tasks"), ["did you mean 'task'?"]),
  "class order": (keys("stream.class_order=radom"), ["did you mean 'random'?"]),
  "first permutation": (
    [f"--config={PERMUTED}:smoke", "--config.stream.first_permutation=identical"],
    ["did you mean 'identity'?"],
  ),
  "network": (keys("network.name=ebn"), ["did you mean 'ebm'?"]),
  "gate": (keys("network.gate=sofmax"), ["did you mean 'softmax'?"]),
  "embedding": (keys("network.embedding=fix"), ["did you mean 'fixed'?"]),
  "init": (keys("network.init=torch"), ["did you mean 'pytorch'?"]),
  "method": (keys("method.name=fine_tune"), ["did you mean 'finetune'?"]),
  "driver": (keys("runner.driver=pmap"), ["choices are auto, map, vmap."]),
  "task's negatives without boundaries": (
    keys("stream.setting=boundary_free", "negatives=one_of_task"),
    ["'one_of_task' needs task boundaries", "use 'one_of_batch'."],
  ),
  "task-incremental without boundaries": (
    keys("stream.setting=boundary_free", "stream.scenario=task"),
    ["config.stream.scenario='task'", "use 'boundary_aware'."],
  ),
  "task's negatives of all tasks at once": (
    keys("stream.setting=joint", "negatives=one_of_task"),
    ["config.stream.setting='joint' has none", "use 'one_of_batch'."],
  ),
  "EWC without boundaries": (
    keys("stream.setting=boundary_free", "method.name=ewc"),
    ["config.method.name='ewc' needs task boundaries", "use 'boundary_aware'."],
  ),
  "SI that never consolidates": (
    keys("stream.setting=boundary_free", "method.name=si"),
    ["'si' would never consolidate", "set config.method.consolidate_every"],
  ),
  "a period that means nothing": (
    keys("method.consolidate_every=5"),
    ["config.method.consolidate_every is a key of online_ewc, si,", "see --help"],
  ),
  "iCaRL on an energy network": (
    keys("method.name=icarl"),
    ["not config.network.name='ebm'; use 'sbc'."],
  ),
  "replay among a task's own classes": (
    keys("method.name=er", "stream.scenario=task"),
    ["config.method.name='er' mixes tasks in a batch", "use 'class'."],
  ),
  "distilling tasks that do not compete": (
    keys("method.name=lwf", "stream.scenario=task"),
    ["config.method.name='lwf' distils all old classes together", "use 'class'"],
  ),
  "all classes where the task is told": (
    [
      f"--config={SPLIT}:sbc",
      "--config.stream.scenario=task",
      "--config.negatives=all_classes",
    ],
    [
      "config.negatives='all_classes' compares the classes of all tasks",
      "use 'all_seen'.",
    ],
  ),
  "GSS with negatives of the batch": (
    keys("method.name=gss_greedy", "negatives=one_of_batch"),
    ["'gss_greedy' takes the gradients of single rows", "use 'all_seen'"],
  ),
  "contexts that are not there": (
    keys("method.name=ctn", "network.name=sbc", "objective=ce"),
    ["'ctn' needs a network with contexts", "use 'context_mlp'."],
  ),
  "contexts of an energy network": (
    keys("network.context=16"),
    ["config.network.context is a key of context_mlp, not of the chosen"],
  ),
  "CTN on the energy network": (
    [f"--config={SPLIT}:ctn"],
    ["config.method.name='ctn' has its own objective", "use 'ce'."],
  ),
  "contexts of tasks that share their labels": (
    [f"--config={SPLIT}:ctn,sbc,domain"],
    ["config.network.name='context_mlp' tells tasks apart by their", "use 'task'"],
  ),
  "contexts with another objective": (
    [f"--config={SPLIT}:ctn,sbc,contrastive"],
    ["config.method.name='ctn' has its own objective", "use 'ce'."],
  ),
  "contexts that learn from single images": (
    [f"--config={SPLIT}:ctn,sbc", "--config.stream.batch_size=1"],
    ["'ctn' parts each batch in two; set config.stream.batch_size to 2 or more."],
  ),
  "contexts in the features of herding": (
    [f"--config={SPLIT}:icarl,sbc", "--config.network.name=context_mlp"],
    ["'icarl' needs features that do not depend on the task", "use 'sbc'."],
  ),
  "contexts with candidates of their own": (
    [f"--config={SPLIT}:ctn,sbc", "--config.negatives=all_of_batch"],
    ["'ctn' has its own candidates and ignores", "'all_of_batch'; use 'auto'."],
  ),
  "too few stored images for contexts": (
    [f"--config={SPLIT}:ctn,sbc", "--config.method.budget=9"],
    ["config.method.budget=9 is less than two images for each of 5 tasks; give 10"],
  ),
  "generated images without boundaries": (
    keys("method.name=dgr", "stream.setting=boundary_free"),
    ["config.method.name='dgr' needs task boundaries", "use 'boundary_aware'."],
  ),
  "feedback to images of colour": (
    keys("method.name=bir", "data.name=cifar10", "network.name=ebm_conv4"),
    ["config.method.name='bir' generates rows", "'fixed_statistics'."],
  ),
  "images of a frozen trunk's features": (
    [
      f"--config={ROOT / 'configs' / 'cifar100.py'}:sbc,fixed",
      *keys("method.name=pgma", "network.pretrained=trunk.npz")[1:],
    ],
    ["config.method.name='pgma' generates images", "backbone_mode='finetune'."],
  ),
  "more generated weights than features": (
    [f"--config={SPLIT}:pgma,sbc", "--config.network.hidden=79"],
    ["config.method.num_generated_units=80 is more than the 79 features", "give 79"],
  ),
  "codes of a single image": (
    [f"--config={SPLIT}:pgma,sbc", "--config.stream.batch_size=1"],
    ["compares the codes of a batch", "config.stream.batch_size to 2 or more."],
  ),
  "another class in a batch of one row": (
    keys("stream.setting=boundary_free", "stream.batch_size=1"),
    [
      "config.negatives='one_of_batch' needs another class in the batch",
      "to 2 or more.",
    ],
  ),
  "a classifier's trunk for energies": (
    [CIFAR10, "--config.network.trunk=resnet18"],
    ["config.network.trunk is unknown"],
  ),
  "a source that CIFAR-10's method does not have": (
    [f"{CIFAR10}:er,sbc,source"],
    ["the variant source has no published setting of er on cifar10; leave it out."],
  ),
  "unknown optimiser": (
    keys("optimiser.name=sdg"),
    ["did you mean 'sgd'? The choices are adam, sgd"],
  ),
  "iCaRL with another objective": (
    [f"--config={SPLIT}:icarl,sbc,contrastive"],
    ["has its own objective", "config.objective='contrastive'; use 'ce'."],
  ),
  "fewer stored images than tasks": (
    [f"--config={SPLIT}:er", "--config.method.budget=4"],
    ["config.method.budget=4 is less than an image for each of 5 tasks; give 5"],
  ),
  "fewer stored images than classes": (
    [f"--config={PERMUTED}:icarl,sbc", "--config.method.budget=99"],
    ["config.method.budget=99 is less than an image for each of 100 classes"],
  ),
  "shares of classes that come again": (
    keys("method.name=er", "method.quota=class", "stream.scenario=domain"),
    ["keeps images of each class", "config.method.quota='task'."],
  ),
  "Fisher recipe": (
    keys("method.name=ewc", "method.fisher=argmin"),
    ["did you mean 'argmax'?"],
  ),
  "negative strength": (
    keys("method.name=ewc", "method.strength=-1.0"),
    ["config.method.strength=-1.0 is too small; give 0.0 or more."],
  ),
  "decay above one": (
    keys("method.name=online_ewc", "method.decay=1.5"),
    ["config.method.decay=1.5 is too large; give 1.0 or less."],
  ),
  "joint pairs without re-pairing": (
    keys("objective=joint_pairs", "negatives=one_of_task"),
    ["config.objective='joint_pairs' and config.negatives='repaired' go together"],
  ),
  "re-pairing without joint pairs": (
    keys("negatives=repaired"),
    ["config.objective='joint_pairs' and config.negatives='repaired' go together"],
  ),
  "cross-entropy over two classes": (
    keys("objective=ce", "negatives=one_of_batch"),
    ["config.objective='ce'", "'one_of_batch'", "config.negatives='all_seen'"],
  ),
  "random order of permuted tasks": (
    [f"--config={PERMUTED}:smoke", "--config.stream.class_order=random"],
    ["config.stream.class_order is not a key of the chosen config.stream.name and"],
  ),
  "noise that is not memorised": (
    [CAPACITY, "--config.data.memorise=False"],
    [
      "config.data.name='noise' has only random labels",
      "set config.data.memorise=True.",
    ],
  ),
  "noise without a number of images": (
    [CAPACITY, "--config.data.images=0"],
    ["needs the number of images to generate; set config.data.images."],
  ),
  "noise from files": (
    [CAPACITY, "--config.data.source=files"],
    ["config.data.source='files'; use 'auto'."],
  ),
  "augmented noise": (
    [CAPACITY, "--config.data.augment=crop_and_flip"],
    ["config.data.augment='crop_and_flip' is for stored images", "use 'none'."],
  ),
  "permuted noise": (
    [CAPACITY, "--config.stream.name=permuted"],
    ["config.stream.name='permuted' is for stored images", "use 'split'."],
  ),
  "noise in a convolution": (
    [CAPACITY, "--config.network.name=ebm_conv4"],
    ["consists of rows of numbers", "use 'ebm_capacity'."],
  ),
  "a network that nobody has": (
    keys("network.name=my_module"),
    ["config.network.name='my_module' is unknown", "package.module:SPEC."],
  ),
  "a gate where there is another": (
    [CAPACITY, "--config.network.gate=softmax"],
    ["config.network.gate is a key of ebm, ebm_conv4, ebm_conv5,", "not of"],
  ),
  "a network that cannot be imported": (
    keys("network.name=no.such_module:SPEC"),
    ["'no.such_module:SPEC' cannot be imported", "check the path"],
  ),
  "table of labels shorter than the classes": (
    [CAPACITY, "--config.network.label_rows=9"],
    ["config.network.label_rows=9 is too small for the 10 classes", "at least 10."],
  ),
  "negative number of images": (
    keys("data.images=-1"),
    ["config.data.images=-1 is too small; give 0 or more."],
  ),
  "two channels of a grey image": (
    keys("data.std=(0.1, 0.2)"),
    ["config.data.std=(0.1, 0.2) does not fit the images of config.data.name='mnist'"],
  ),
  "mean that is no number": (
    keys("data.mean=('a',)"),
    ["config.data.mean=('a',) does not fit", "give 1 number, one for each channel"],
  ),
  "std of zero": (
    keys("data.std=(0.0,)"),
    ["config.data.std=(0.0,) divides the pixels; give positive numbers."],
  ),
  "mean that is not finite": (
    keys("data.mean=(1e999,)"),
    ["config.data.mean=(inf,) does not fit", "give 1 number, one for each channel"],
  ),
  "mean of images that are drawn": (
    [CAPACITY, "--config.data.mean=(0.1, 0.1, 0.1)"],
    ["leave config.data.mean and config.data.std at ()."],
  ),
  "no seeds": (keys("seeds=0"), ["config.seeds=0 is too small; give 1 or more."]),
  "negative seed": (keys("seed=-1"), ["config.seed=-1 is too small; give 0 or more."]),
  "seed beyond 32 bits": (keys("seed=4294967296"), ["config.seed", "4294967296"]),
  "too many tasks": (
    [f"--config={PERMUTED}:smoke", "--config.stream.tasks=128"],
    ["config.stream.tasks=128"],
  ),
  "no units": (keys("network.hidden=0"), ["config.network.hidden=0 is too small"]),
  "a single checkpoint": (
    keys("checkpoint.keep=1"),
    ["config.checkpoint.keep=1 is too small; give 2 or more."],
  ),
  "learning rate 0": (
    keys("optimiser.learning_rate=0"),
    ["config.optimiser.learning_rate=0.0 is out of range", "between 0 and 10."],
  ),
  "learning rate nan": (keys("optimiser.learning_rate=nan"), ["is out of range"]),
  "momentum 1": (
    keys("optimiser.b1=1"),
    ["config.optimiser.b1=1.0 is out of range; give less than 1."],
  ),
  "a key of another method": (
    [f"--config={SPLIT}:lwf,smoke", "--config.method.strength=3"],
    ["config.method.strength is a key of ewc, online_ewc, si,", "see --help"],
  ),
  "a spec of another kind": (
    keys("method.name=ebmjax.networks.mlp:EBM"),
    ["is of type NetworkSpec, not MethodSpec; give the import path of a MethodSpec."],
  ),
  "a module without that name": (
    keys("method.name=ebmjax.methods.si:NO"),
    ["ebmjax.methods.si has no NO; give package.module:NAME."],
  ),
  "unknown variant": (
    [f"--config={SPLIT}:boundry_free"],
    ["unknown variant 'boundry_free'; did you mean 'boundary_free'? The choices are"],
  ),
  "variants that exclude each other": (
    [f"--config={SPLIT}:boundary_free,joint"],
    ["the variants boundary_free and joint exclude each other; give one of them."],
  ),
  "objectives that exclude each other": (
    [f"--config={ROOT / 'configs' / 'cifar100.py'}:all_seen,joint_pairs"],
    ["the variants joint_pairs and all_seen exclude each other; give one of them."],
  ),
  "file of flags that is not there": (
    [SMOKE, "--flagfile=/no/such/file"],
    ["/no/such/file", "see --help."],
  ),
  "pixels of data whose range nobody knows": (
    [
      f"--config={ROOT / 'configs' / 'embeddings.py'}:generative",
      "--config.method.likelihood=bernoulli",
    ],
    ["config.method.likelihood='bernoulli' is for pixels", "use 'gaussian'."],
  ),
  "a key without its prefix": (
    [SMOKE, "--seeds=3"],
    ["'seeds'; did you mean --config.seeds? Else see --help."],
  ),
  "a group without its prefix": (
    [SMOKE, "--method=ewc"],
    ["did you mean --config.method.name? Else see --help."],
  ),
  "unknown flag": ([SMOKE, "--workdri=x"], ["workdri", "see --help."]),
  "stray argument": ([SMOKE, "seeds=3"], ["the argument 'seeds=3' is not a flag"]),
  "no experiment": ([], ["no experiment is named", "--config=configs/permmnist.py"]),
  "two experiments": (
    [SMOKE, f"--config={PERMUTED}"],
    ["--config is given 2 times; give it once."],
  ),
  "empty experiment": (["--config="], ["no experiment is named"]),
  "missing file": (
    [f"--config={ROOT / 'configs' / 'splitmist.py'}"],
    [f"there is no configuration file {ROOT / 'configs' / 'splitmist.py'}.", SPLIT],
  ),
  "missing file in a missing folder": (
    ["--config=nowhere/at_all.py"],
    ["there is no configuration file nowhere/at_all.py."],
  ),
  "not a Python file": (
    [f"--config={ROOT / 'pyproject.toml'}"],
    [f"{ROOT / 'pyproject.toml'} is not a Python file"],
  ),
}
