"""What the config.json of a folder says of an image encoder, without torch."""

from typing import Any

# Model types of transformers whose states are of patches, or a map; those of text and pictures have a vision tower.
_VISION_TYPES = {
    "clip": "CLIP",
    "clip_vision_model": "CLIP",
    "siglip": "SigLIP",
    "siglip_vision_model": "SigLIP",
    "siglip2": "SigLIP 2",
    "dinov2": "DINOv2",
    "dinov2_with_registers": "DINOv2 with registers",
    "dinov3_vit": "DINOv3",
    "vit": "ViT",
    "resnet": "ResNet",
    "convnext": "ConvNeXt",
    "convnextv2": "ConvNeXt V2",
}


def vision_summary(config: Any) -> str | None:
    """A sentence about the vision model of a config.json; None for another model."""
    if not isinstance(config, dict) or config.get("model_type") not in _VISION_TYPES:
        return None
    vision = config.get("vision_config")
    part = vision if isinstance(vision, dict) else config
    side = part.get("image_size")
    name = _VISION_TYPES[config["model_type"]]
    return f"{name}, pictures of {side} pixels." if isinstance(side, int) else f"{name}."
