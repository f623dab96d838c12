"""Let a CUDA build of torchvision import beside a CPU build of torch.

timm imports torchvision, whose wheel registers CUDA-only operators on import and fails on CPU torch with
"operator torchvision::nms does not exist". An empty stand-in for the registering module, installed as a ``.pth``
line of this virtual environment, cures it; nothing here uses those operators.
"""

import sysconfig
from pathlib import Path

import torch

STAND_IN = (
    "import sys, types; sys.modules.setdefault('torchvision._meta_registrations', "
    "types.ModuleType('torchvision._meta_registrations'))\n"
)

if torch.version.cuda is None:
    Path(sysconfig.get_paths()["purelib"], "torchvision_cpu.pth").write_text(STAND_IN)
