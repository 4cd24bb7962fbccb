"""The module of this name in the Dragon Telemetry Service: programs for Dragon only change their
import."""

from ._analysis import AnalysisClient
from .collector import CollectorGroup
from .detector import CollectorDetectorGroup, Detector
from .slow_gpu import SlowGPUDetector

__all__ = ["AnalysisClient", "CollectorDetectorGroup", "CollectorGroup", "Detector", "SlowGPUDetector"]
