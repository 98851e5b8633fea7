"""CoNAL: common confusions, and each annotator's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from neucrowd_tf.crowd_layers.instance_layer import InstanceLayer
from neucrowd_tf.crowd_layers.presets import registered
from neucrowd_tf.dasc.methods import self_trained
from neucrowd_tf.declare import estimator, number, whole

if TYPE_CHECKING:
    import keras


@registered(
    "conal", "CoNAL: confusions that all annotators share, and each one's own, mixed by a gate"
)
@estimator
class CoNAL(InstanceLayer):
    """A classifier, a common confusion matrix and a matrix per annotator.

    A gate of instance and annotator decides which of the two matrices a label comes from.

    Attributes:
        confusion_matrices_: `[R, C true, C observed]`: an annotator's mean answer over the training
            instances, weighted with the classifier's probability of the true class.
        model_, history_, n_iter_, best_epoch_, rows_: see `AnnotatorEstimator`.

    References:
        Chu, Ma and Wang (2021), eqs. 1 and 3, and the final loss.
    """

    embedding_size: Annotated[int, whole(1), "of the instances and annotators of the gate."] = 20
    distance_weight: Annotated[
        float,
        number(least=0),
        "lambda, of how far annotators' matrices are from the common one (more is better).",
    ] = 1e-5

    def _head(self, num_annotators: int, num_classes: int) -> Any:
        from neucrowd_tf.crowd_layers.heads.conal import ConalHead

        return ConalHead(num_annotators, self.embedding_size, self.distance_weight, name="conal")

    def _graph(self, base: keras.Model, standardised: Any, head: Any) -> tuple[Any, Any]:
        import keras

        probabilities = base(standardised)
        # Deviation: one linear layer embeds an instance; the authors' code has two with nothing
        # between them.
        flat = keras.layers.Flatten()(standardised)  # Keras needs a layer between input and head
        return head([probabilities, flat]), probabilities


SelfTrainedCoNAL = self_trained("conal", CoNAL, "CoNAL")
