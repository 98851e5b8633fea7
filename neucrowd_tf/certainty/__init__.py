"""How sure inferred labels, annotators' skills and a crowd's accuracy are."""

from neucrowd_tf.certainty.estimate import Estimate
from neucrowd_tf.certainty.recalibration import Calibration, Certainty, gold_agreement
from neucrowd_tf.certainty.skills import Skills, annotator_skills

__all__ = ["Calibration", "Certainty", "Estimate", "Skills", "annotator_skills", "gold_agreement"]
