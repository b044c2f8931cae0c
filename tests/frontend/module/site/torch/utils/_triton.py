# Stands for torch's own, which looks for a device.
def has_triton():
    return False
