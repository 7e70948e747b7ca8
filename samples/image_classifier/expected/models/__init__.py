from .mixer import MLPMixer
from .resnet import ResNet


def build_model(name, num_classes=10, image_size=32):
    if name == 'resnet_small':
        return ResNet([1, 1, 1], widths=(16, 32, 64), num_classes=num_classes)
    if name == 'resnet_wide':
        return ResNet([2, 2, 2], widths=(32, 64, 128), num_classes=num_classes)
    if name == 'mixer':
        return MLPMixer(image_size=image_size, patch_size=4, dim=64, depth=4, num_classes=num_classes)
    raise ValueError(f'no such model: {name}')
