from .mod import *
