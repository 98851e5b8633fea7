"""How sure inferred labels, annotators' skills and a crowd's accuracy are."""

from neucrowd_tf.certainty.recalibration import Calibration, Certainty, Estimate, gold_agreement
from neucrowd_tf.certainty.skills import Skills, annotator_skills

__all__ = ["Calibration", "Certainty", "Estimate", "Skills", "annotator_skills", "gold_agreement"]
