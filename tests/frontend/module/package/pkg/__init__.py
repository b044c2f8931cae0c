from .sub import relu as activation
from . import shapes
