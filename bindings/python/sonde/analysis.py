"""What the Dragon Telemetry Service has in a module of this name: programs written for it run with
their import line changed."""

from ._analysis import AnalysisClient
from .collector import CollectorGroup
from .detector import CollectorDetectorGroup, Detector
from .slow_gpu import SlowGPUDetector

__all__ = ["AnalysisClient", "CollectorDetectorGroup", "CollectorGroup", "Detector", "SlowGPUDetector"]
