r"""
# CrowdInG: learning from crowds via generative augmentation

On average 2.5 of 59 annotators labelled each of 1,000 images. CrowdInG generates the other labels.
A generated label should look like the annotator's, which the discriminator D judges, and tell
something about the image's class, which the auxiliary network Q judges. All four networks see the
image x:

```text
                            annotator e
                             and noise             authentic labels
                                 │                        │
                         ẑ       ▼    generated labels y  ▼
image x ──► CLASSIFIER ────► GENERATOR G ────┬────► DISCRIMINATOR D: "is y authentic?"
                ▲                 ▲          │
                │                 │          └────► AUXILIARY NETWORK Q: "which ẑ led to y?"
                │                 │
         D's answer (6)   D's and Q's answers (5)
```

| step | who learns | from what | equation |
|---|---|---|---|
| start | the classifier | authentic labels (DL-CL) | |
| start | G, then D and Q | G by likelihood of authentic labels; D and Q as in turn 1 | |
| turn 1 | D and Q | authentic and generated labels | 4 and 3 |
| turn 2 | G | images of which the classifier is sure | 5 |
| turn 3 | the classifier | the other images | 6 |

The three turns repeat; the classifier is the result. `python crowding.py` plays the game on digits
and prints these test accuracies:

| classifier | this file, digits, seed 0 | `neucrowd_tf`, LabelMe, 10 seeds |
|---|---|---|
| DL-CL, before the game | 0.960 | 0.847 [0.842, 0.851] |
| CrowdInG, after the game, with our loss of D | 0.964 | 0.861 [0.856, 0.865] |
| CrowdInG by the paper's equations | not run | 0.847 [0.843, 0.852] |

On digits the difference is three images of 743, too few to show a gain.

To learn the method in 20 minutes, stop before "Data and training", and skip the code after each "By
hand", which only repeats it.

Paper: Chu and Wang, *Improve Learning from Crowds via Generative Augmentation*, KDD 2021. The [last
section](#what-the-paper-leaves-open) says what it leaves open.
"""

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

num_classes = 8
k = 32  # length of all embeddings
noise_size = 8  # length of epsilon
lam = 0.5  # lambda, the weight of the information loss
t = 0.5  # the threshold: this share of the images trains G, the others the classifier
cap = 10.0  # the largest G / G_0
floor = 1e-3  # the smallest G_0
pretrain_epochs = 15  # of DL-CL
game_pretrain_epochs = 10  # of G, and of D and Q
epochs = 12  # of the game
passes = 5  # over the labels of a turn

r"""
## Names

There are N images x `[N, features]`, R annotators e `[R, R]` (one-hot vectors) and C classes. Y
`[N, R]` has the authentic labels, or -1. $\hat z$ `[N, C]` has the classifier's probabilities.

## The start: DL-CL (section 3.3.3)

The classifier first trains by a crowd layer (Rodrigues and Pereira, 2018): $\hat z$ times a matrix
of the annotator, at first the identity, gives the logits of the annotator's label. The game does
not need the matrices.
"""


def crowd_layer(z_hat, annotator_matrices):
    """Returns logits of annotators' labels `[N, R, C]`, for matrices `[R, C, C]`."""
    return tf.einsum("nc,rcd->nrd", z_hat, annotator_matrices)


r"""
**By hand.** If an annotator always says 1, both rows of the matrix may be (0, 4). Any $\hat z$ then
gives the logits (0, 4), and label 1 the probability $\exp(4) / (1 + \exp(4))$.
"""

if __name__ == "__main__":
    toy_matrices = tf.constant([[[0.0, 4.0], [0.0, 4.0]]])
    toy_logits = crowd_layer(tf.constant([[0.75, 0.25]]), toy_matrices)
    print(f"crowd layer: P(label 1) = {tf.nn.softmax(toy_logits)[0, 0, 1]:.3f}")  # 0.982

r"""
## The generator G (section 3.2.1, equation 1)

From the image x, the annotator e, $\hat z$ and normal noise $\epsilon$, G scores each label by g:

$$P(y_n^r = c | x_n, e_r, \epsilon, \hat z_n) \propto \exp g(c, x_n, e_r, \epsilon, \hat z_n)\ (1)$$

$\hat z$ enters whole, not as a class drawn from it, so that a gradient can pass through it to the
classifier. Only (6) uses it; elsewhere $\hat z$ is a constant of the epoch. Without x and
$\epsilon$, mistakes would depend on annotator and class alone, as in a crowd layer.
"""


class Generator(keras.Model):
    """Equation 1, as log probabilities `[..., C]`."""

    def __init__(self):
        super().__init__()
        self.embed_x = layers.Dense(k)
        self.embed_e = layers.Dense(k)
        self.from_x = layers.Dense(64, use_bias=False)
        self.from_e = layers.Dense(64, use_bias=False)
        self.from_noise = layers.Dense(64, use_bias=False)
        self.from_z_hat = layers.Dense(64)
        self.scores = layers.Dense(num_classes)  # g

    def call(self, x, e, z_hat, noise):
        hidden = self.from_x(self.embed_x(x)) + self.from_e(self.embed_e(e))
        hidden = tf.nn.relu(hidden + self.from_z_hat(z_hat) + self.from_noise(noise))
        return tf.nn.log_softmax(self.scores(hidden))


def at(values, y):
    """Returns the entries of `[..., C]` at labels `[...]`."""
    return tf.gather(values, y, axis=-1, batch_dims=len(y.shape))


r"""
**By hand.** Scores g of 0 and $\log 3$ have the exponentials 1 and 3: probabilities 1/4 and 3/4.
"""

if __name__ == "__main__":
    toy_log_g = tf.nn.log_softmax(tf.constant([0.0, np.log(3)]))
    print(f"equation 1: P(label 1) = {np.exp(toy_log_g[1]):.3f}")  # 0.750

r"""
## The discriminator D (section 3.2.2, equation 2)

D gives the probability that label c of annotator r for image n is authentic:

$$D(c | x_n, e_r) = \sigma(u_r^\top M_c v_n)\ (2)$$

u and v are affine encodings of annotator and image; each class has a matrix $M_c$. If an annotator
confuses two classes, both labels are plausible, so D(c) need not sum to 1.

The *LCA decoder* (label correlation aggregation) mixes the matrices of classes that annotators
confuse, by a graph convolution:

$$M \leftarrow S^{-1/2} (A + I) S^{-1/2}\, M W$$

$A_{cd}$ counts, over images, the pairs of annotators of whom one says c and the other d. S (the
paper's $\hat D$) has the row sums of A + I on its diagonal; W is a weight. The paper gives A no
scale. Here its diagonal is 0, and it is divided by its largest row sum: otherwise I would vanish
next to the counts.
"""


def label_correlation(Y, num_classes=num_classes):
    """Returns the graph convolution's matrix `[C, C]`, section 3.2.2."""
    votes = np.stack([np.sum(c == Y, axis=1) for c in range(num_classes)], axis=1).astype(float)
    A = votes.T @ votes
    np.fill_diagonal(A, 0)
    A = A / A.sum(axis=1).max() + np.eye(num_classes)
    return (A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))).astype("float32")


def pair_logits(u, class_matrices, v):
    """Returns u M_c v of all classes `[..., C]`, of equation 2."""
    return tf.reduce_sum(tf.einsum("...k,ckl->...cl", u, class_matrices) * v[..., None, :], axis=-1)


class Discriminator(keras.Model):
    """Equation 2, as logits of all classes `[..., C]`, and the encodings that Q reuses."""

    def __init__(self, correlation):
        super().__init__()
        normal = keras.initializers.RandomNormal(stddev=1 / k)
        self.correlation = tf.constant(correlation)
        self.encode_x = layers.Dense(k)  # v
        self.encode_e = layers.Dense(k)  # u
        self.M = self.add_weight(shape=(num_classes, k, k), initializer=normal, name="M")
        self.W = self.add_weight(shape=(k, k), initializer="orthogonal", name="W")

    def call(self, x, e):
        v, u = self.encode_x(x), self.encode_e(e)
        decoded = tf.einsum("cd,dkl,lj->ckj", self.correlation, self.M, self.W)
        return pair_logits(u, decoded, v), (v, u, decoded)


r"""
**By hand.** Let u = (1, 0), v = (2, 1) and $M_0$ = I. Then $u^\top M_0 v = 2$, and
$D(0) = \sigma(2) = 1 / (1 + \exp(-2))$.

The decoder: two annotators give three images the labels (0, 0), (0, 1) and (1, 1). A is
((0, 1), (1, 0)), and A + I has ones only, with row sums of 2. All entries of the graph convolution
are 1/2: the classes share everything.
"""

if __name__ == "__main__":
    toy_pair = pair_logits(tf.constant([1.0, 0.0]), tf.eye(2)[None], tf.constant([2.0, 1.0]))
    print(f"equation 2: D(0) = {tf.sigmoid(toy_pair)[0]:.3f}")  # 0.881
    toy_graph = label_correlation(np.array([[0, 0], [0, 1], [1, 1]]), num_classes=2)
    print(f"decoder: graph of classes 0 and 1 = {toy_graph[0, 1]:.3f}")  # 0.500

r"""
## The auxiliary network Q (section 3.2.2, equation 3)

G could fool D with labels that tell nothing of the class, such as an annotator's most frequent one.
So Q looks at a generated label and guesses the $\hat z$ behind it. Despite its name, the
information loss is wanted high: it is 0, its most, if Q says $\hat z$:

$$L_I = \sum_c \hat z_c \log Q(c | x_n, e_r, y) + H(\hat z)\ (3)$$

For one image it is at most 0: minus the KL divergence of Q from $\hat z$. H does not depend on G, D
or Q, and is left out below. Q reuses u and v, and reads a label as its decoded $M_c$.
"""


class Auxiliary(keras.Model):
    """log Q(z | x, e, y) `[..., C]`, equation 3, from the discriminator's encodings."""

    def __init__(self):
        super().__init__()
        self.embed_label = layers.Dense(k)
        self.from_label = layers.Dense(128)
        self.from_x = layers.Dense(128, use_bias=False)
        self.from_e = layers.Dense(128, use_bias=False)
        self.scores = layers.Dense(num_classes)

    def call(self, v, u, decoded, y):
        labels = self.embed_label(tf.reshape(decoded, [num_classes, k * k]))
        hidden = self.from_x(v) + self.from_e(u) + tf.gather(self.from_label(labels), y)
        return tf.nn.log_softmax(self.scores(tf.nn.relu(hidden)))


def information(z_hat, log_q):
    """Returns equation 3 without H, `[...]` of `[..., C]`."""
    return tf.reduce_sum(z_hat * log_q, axis=-1)


r"""
**By hand.** Let $\hat z$ = (3/4, 1/4). If Q does not know and says (1/2, 1/2), the sum is
$\log 1/2 = -0.693$. If Q says $\hat z$, it is $3/4 \log 3/4 + 1/4 \log 1/4 = -0.562$, the most that
is possible, and $L_I = 0$.
"""

if __name__ == "__main__":
    toy_z_hat = tf.constant([0.75, 0.25])
    print(f"equation 3, Q unsure: {information(toy_z_hat, tf.math.log([0.5, 0.5])):.3f}")  # -0.693
    print(f"equation 3, Q sure: {information(toy_z_hat, tf.math.log(toy_z_hat)):.3f}")  # -0.562

r"""
## Turn 1: D and Q (section 3.3.1, equation 4)

**Labels.** D sees all authentic labels, and of each annotator as many generated ones (at most all
that are missing), so that these do not prevail. They are drawn from the missing labels without
replacement, in proportion to 1 / entropy of G's distribution. The entropy counts as at least 1e-6.
So G is mostly sure of these labels, which are the hardest for D.

**Losses.** D raises the value of the game; G and the classifier lower it, by (5) and (6):

$$\log D(y)\ \text{of authentic labels} + \log(1 - D(y))\ \text{of generated ones}\ (4)$$

Q does not enter (4); it raises $L_I$. One step trains both, as they share u, v, M and W. It
minimises minus (4), minus $\lambda L_I$ of generated labels, and an "L2 norm" of D's outputs, here
the mean of $D^2$.

**A change.** Here an authentic label costs the cross-entropy of all C entries: y is plausible, the
other classes are not. Why? Let y have the share p of an annotator's authentic labels, and the share
q of as many generated ones. By (4) the best D(y) is p / (p + q). Once q = p, this is 1/2 for all
labels and teaches nothing. With all entries, authentic labels of other classes, a share of 1 - p,
also push D(y) down. The best D(y) is then p / (p + q + 1 - p) = p / (1 + q). At q = p it still
rises with p. So G is drawn to an annotator's likeliest labels, not to the shares of all. With
(4) in its place accuracy on LabelMe is lower by 1.1 [0.5, 1.7] points.
"""


def authenticity_losses(logits, y, authentic):
    """Returns D's losses `[P]`: minus equation 4, with all entries of authentic labels."""
    one_hot = tf.one_hot(y, logits.shape[-1])
    every = tf.nn.sigmoid_cross_entropy_with_logits(labels=one_hot, logits=logits)
    return tf.where(authentic, tf.reduce_sum(every, axis=1), tf.nn.softplus(at(logits, y)))


def judges_loss(D, Q, x, e, y, authentic, z_hat):
    """Returns what D and Q minimise: equations 3 and 4 of labels `[P]`."""
    logits, encodings = D(x, e)
    losses = authenticity_losses(logits, y, authentic)
    of_generated = tf.boolean_mask(information(z_hat, Q(*encodings, y)), ~authentic)
    sparsity = tf.reduce_mean(tf.square(tf.sigmoid(logits)))
    return tf.reduce_mean(losses) + sparsity - lam * tf.reduce_mean(of_generated)


r"""
**By hand.** Let D = (3/4, 1/2), whose logits are $\log 3$ and 0. The authentic label 0 costs
$-\log 3/4 - \log(1 - 1/2) = 0.288 + 0.693$, of which 0.288 is published. The generated label 0
costs $-\log(1 - 3/4)$.
"""

if __name__ == "__main__":
    toy_logits = tf.constant([[np.log(3), 0.0], [np.log(3), 0.0]], tf.float32)
    toy_losses = authenticity_losses(toy_logits, tf.constant([0, 0]), tf.constant([True, False]))
    print(f"equation 4, an authentic label costs {toy_losses[0]:.3f}")  # 0.981
    print(f"equation 4, a generated label costs {toy_losses[1]:.3f}")  # 1.386

r"""
## Turn 2: G (section 3.3.2, equation 5)

Labels are drawn for all cells, also those that an annotator filled. No gradient passes through a
draw. So a label keeps the probability $G_0$ with which it was drawn, and its loss counts by how
much more probable it has become:

$$\frac{1}{NR} \sum_{n, r} (\delta(y_n^r) - \mu) \frac{G_\theta(y_n^r)}{G_0(y_n^r)}\ (5)$$

Here $\delta = L_G - \lambda L_I$, and $L_G = \log(1 - D(y))$ is low if D takes the label for an
authentic one. $\mu$ is the mean of the losses: a label that is better than the mean becomes more
probable, a worse one less. `cap` and `floor` bound $G / G_0$.
"""


def rewards(D, Q, x, e, y, z_hat):
    """Returns L_G and delta of drawn labels, section 3.3.2."""
    logits, encodings = D(x, e)
    L_G = -tf.nn.softplus(at(logits, y))
    return L_G, L_G - lam * information(z_hat, Q(*encodings, y))


def generator_loss(G, e, x, noise, z_hat, y, G_0, losses, mu):
    """Returns equation 5 of images `[B]` by all annotators."""
    log_g = G(x[:, None], e, z_hat[:, None], noise)
    ratio = tf.minimum(tf.exp(at(log_g, y)) / tf.maximum(G_0, floor), cap)
    return tf.reduce_mean((losses - mu) * ratio)


r"""
## Turn 3: the classifier (section 3.3.2, equation 6)

The classifier minimises the same sum with $L_G$ in place of $\delta$:

$$\frac{1}{NR} \sum_{n, r} (L_G(y_n^r) - \mu) \frac{G(y_n^r | \hat z_n)}{G_0(y_n^r)}\ (6)$$

$L_I$ is left out: it asks that a label tells the class. That the class tells each label is not
asked, as annotators make mistakes. G is fixed, and the classifier computes $\hat z$ in each step.
So the gradient goes through G to the classifier's weights, and $\hat z$ moves to where G gives
labels that D takes for authentic ones. With $\mu = 0$ every drawn label would become more probable,
as $L_G$ is negative.
"""


def classifier_loss(G, classifier, e, x, noise, old_z_hat, y, G_0, losses, mu):
    """Returns equation 6: equation 5 with the z-hat that the classifier gives now."""
    return generator_loss(G, e, x, noise, classifier(x), y, G_0, losses, mu)


r"""
**By hand, (5).** With $D(y) = 3/4$, $L_G = \log 1/4 = -1.386$; with an unsure Q,
$\delta = -1.386 - 0.5 \cdot (-0.693) = -1.040$.

For one annotator, G drew a label of each of two images, both with $G_0$ = 1/2. They are 0, with
$\delta = -1$, and 1, with $\delta = 0$, so $\mu = -1/2$. G moves to (0.6, 0.4) for both images. The
ratios are 1.2 and 0.8, and (5) falls from 0 to $(-0.5 \cdot 1.2 + 0.5 \cdot 0.8) / 2 = -0.1$.

**By hand, (6).** Let G answer with $\hat z$ itself, G(y) = $\hat z_y$. Labels, $G_0$ and $\mu$ are
those of (5); $L_G$ is -1 and 0. The classifier moves $\hat z$ to (0.6, 0.4) for the first image and
to (0.8, 0.2) for the second. The ratios are 0.6 / 0.5 = 1.2 for label 0 and 0.2 / 0.5 = 0.4 for
label 1, and (6) is $(-0.5 \cdot 1.2 + 0.5 \cdot 0.4) / 2 = -0.2$.
"""

if __name__ == "__main__":

    def toy_G(x, e, z_hat, noise):
        return tf.math.log(z_hat)

    toy_drawn = tf.constant([[0], [1]]), 0.5, tf.constant([[-1.0], [0.0]]), -0.5
    toy_z_hat = tf.constant([[0.6, 0.4], [0.6, 0.4]])
    toy_risk = generator_loss(toy_G, None, toy_z_hat, None, toy_z_hat, *toy_drawn)
    print(f"equation 5: {toy_risk:.3f}")  # -0.100
    toy_x = tf.constant([[0.6, 0.4], [0.8, 0.2]])  # this toy's classifier returns x
    toy_risk = classifier_loss(toy_G, lambda x: x, None, toy_x, None, None, *toy_drawn)
    print(f"equation 6: {toy_risk:.3f}")  # -0.200

r"""
## The whole game (section 3.3.3)

Turn 2 has the share t of the images for which $\hat z$ has the least entropy; turn 3 has the
others. $\hat z$ of little entropy is mostly right, so G learns annotators' mistakes from right
classes. The classifier learns where it is unsure. If both are updated together on the same images,
the paper reports that accuracy fluctuates and the model collapses.

The paper also removes single parts:

| name | without | here | then |
|---|---|---|---|
| CrowdG | information loss | `lam = 0` | labels need not depend on the class |
| U | the image in G | no `from_x` | mistakes cannot depend on the image |
| I | the annotator in G | no `from_e` | all annotators err alike |
| R | entropy | `select` without `- np.log(...)` | as many labels for D, at random |
| one step | the split | turns 2 and 3 as one, on all images | the model collapses (the paper) |
"""

"""
## Data and training (not needed for the method)

Here 15 simulated annotators label a tenth of 500 of scikit-learn's digits 0 to 7. Each gives a
share between 0.3 and 0.8 of right labels. Validation images choose the epoch and nothing else; of
equally accurate epochs, the one with the least log loss. DL-CL counts as epoch 0.
"""


def simulate(seed):
    """Returns x and Y, then x and true labels of validation and of test images."""
    rng = np.random.default_rng(seed)
    x, truth = load_digits(n_class=num_classes, return_X_y=True)
    train, valid, test = np.split(rng.permutation(len(x)), [500, 700])
    right = rng.random((500, 15)) < rng.uniform(0.3, 0.8, size=15)
    wrong = rng.integers(num_classes, size=(500, 15))
    Y = np.where(right, truth[train, None], wrong).astype("int32")
    Y[rng.random(Y.shape) > 0.1] = -1
    x = StandardScaler().fit(x[train]).transform(x).astype("float32")
    return x[train], Y, x[valid], truth[valid], x[test], truth[test]


def make_classifier(features):
    l2 = keras.regularizers.L2(5e-4)
    first = layers.Dense(128, "relu", kernel_regularizer=l2)
    last = layers.Dense(num_classes, "softmax", kernel_regularizer=l2)
    return keras.Sequential([keras.Input((features,)), first, layers.Dropout(0.5), last])


def batches(rng, size, most, times):
    """Yields batches of at most `most` of `size` rows, `times` times over."""
    for _ in range(times):
        yield from np.array_split(rng.permutation(size), -(-size // most))


def trainer(rate, variables, loss, *first):
    """Returns a step of Adam on a loss of `first` and a batch."""
    optimizer = keras.optimizers.Adam(rate)

    @tf.function(reduce_retracing=True)
    def step(*rows):
        with tf.GradientTape() as tape:
            value = loss(*first, *rows)
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))

    return step


def dl_cl_loss(classifier, annotator_matrices, x, Y):
    logits = crowd_layer(classifier(x, training=True), annotator_matrices.value)[Y >= 0]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(Y[Y >= 0], logits)
    return tf.reduce_mean(losses) + tf.add_n(classifier.losses)


def dl_cl(rng, x, Y):
    classifier = make_classifier(x.shape[1])
    identity = np.eye(num_classes, dtype="float32")
    annotator_matrices = keras.Variable(np.tile(identity, (Y.shape[1], 1, 1)))
    variables = [*classifier.trainable_variables, annotator_matrices]
    step = trainer(1e-3, variables, dl_cl_loss, classifier, annotator_matrices)
    for b in batches(rng, len(x), 64, pretrain_epochs):
        step(x[b], Y[b])
    return classifier


def draw(rng, G, x, e, z_hat):
    """Returns noise, drawn labels `[N, R]`, their probabilities G_0, and log G `[N, R, C]`."""
    noise = rng.standard_normal((len(x), len(e), noise_size)).astype("float32")
    log_g = G(x[:, None], e, z_hat[:, None], noise).numpy()
    y = (log_g + rng.gumbel(size=log_g.shape)).argmax(axis=-1).astype("int32")
    return noise, y, np.exp(at(log_g, y).numpy()), log_g


def select(rng, log_g, Y):
    """Draws cells, section 3.3.1, by the largest log weights plus Gumbel noise; returns n and r."""
    entropy = -np.sum(np.exp(log_g) * log_g, axis=-1)
    keys = rng.gumbel(size=entropy.shape) - np.log(np.maximum(entropy, 1e-6))
    order = np.argsort(np.where(Y >= 0, np.inf, -keys), axis=0)
    authentic = (Y >= 0).sum(axis=0)
    counts = np.minimum(authentic, len(Y) - authentic)
    first = np.arange(len(Y)) < counts[:, None]
    return order.T[first], np.nonzero(first)[0]


def turn_1(rng, step, G, x, e, Y, z_hat, times):
    """Trains D and Q, equation 4."""
    _, drawn, _, log_g = draw(rng, G, x, e, z_hat)
    n, r = np.concatenate([np.nonzero(Y >= 0), select(rng, log_g, Y)], axis=1)
    authentic = Y[n, r] >= 0
    y = np.where(authentic, Y[n, r], drawn[n, r])
    for b in batches(rng, len(y), 512, times):
        step(x[n[b]], e[r[b]], y[b], authentic[b], z_hat[n[b]])


def turn_2_or_3(turn, rng, step, G, D, Q, x, e, z_hat):
    """Trains G or the classifier, equations 5 and 6; losses and G_0 stay as drawn."""
    noise, y, G_0, _ = draw(rng, G, x, e, z_hat)
    L_G, delta = rewards(D, Q, x[:, None], e, y, z_hat[:, None])
    losses = (delta if turn == 2 else L_G).numpy()
    for b in batches(rng, len(x), 100, passes):
        step(x[b], noise[b], z_hat[b], y[b], G_0[b], losses[b], losses.mean())


def by_entropy(z_hat):
    """Returns images by the entropy of z-hat, section 3.3.3."""
    return np.argsort(-np.sum(z_hat * np.log(np.maximum(z_hat, 1e-30)), axis=1), kind="stable")


def play(rng, classifier, networks, steps, x, e, Y, z_hat):
    """Plays an epoch of the game, section 3.3.3, and returns the new z-hat."""
    G, D, Q = networks
    turn_1(rng, steps[0], G, x, e, Y, z_hat, passes)
    sure, unsure = np.split(by_entropy(z_hat), [round(t * len(x))])
    turn_2_or_3(2, rng, steps[1], G, D, Q, x[sure], e, z_hat[sure])
    turn_2_or_3(3, rng, steps[2], G, D, Q, x[unsure], e, z_hat[unsure])
    return classifier(x).numpy()


def likelihood_loss(G, y, *inputs):
    return -tf.reduce_mean(at(G(*inputs), y))


def pretrain_generator(rng, G, x, e, Y, z_hat):
    step = trainer(1e-3, G.trainable_variables, likelihood_loss, G)
    rows, annotators = np.nonzero(Y >= 0)
    for b in batches(rng, len(rows), 64, game_pretrain_epochs):
        n, r = rows[b], annotators[b]
        noise = rng.standard_normal((len(b), noise_size)).astype("float32")
        step(Y[n, r], x[n], e[r], z_hat[n], noise)


def score(classifier, x, truth):
    """Returns accuracy and minus the log loss."""
    p = classifier(x).numpy()
    return np.mean(p.argmax(axis=1) == truth), -log_loss(truth, p, labels=range(num_classes))


def run(data, seed):
    """Returns the test accuracy, the classes predicted `[N]` and labels that G draws `[N, R]`."""
    x, Y, x_valid, truth_valid, x_test, truth_test = data
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    e = np.eye(Y.shape[1], dtype="float32")

    classifier = dl_cl(rng, x, Y)
    before = score(classifier, x_test, truth_test)[0]
    z_hat = classifier(x).numpy()
    G, D, Q = Generator(), Discriminator(label_correlation(Y)), Auxiliary()
    y = draw(rng, G, x[:1], e, z_hat[:1])[1]
    rewards(D, Q, x[:1, None], e, y, z_hat[:1, None])  # the first calls make the weights
    pretrain_generator(rng, G, x, e, Y, z_hat)
    of_judges = [*D.trainable_variables, *Q.trainable_variables]
    step = trainer(1e-3, of_judges, judges_loss, D, Q)
    for _ in range(game_pretrain_epochs):
        turn_1(rng, step, G, x, e, Y, z_hat, 1)

    steps = (
        trainer(1e-3, of_judges, judges_loss, D, Q),
        trainer(3e-4, G.trainable_variables, generator_loss, G, e),
        trainer(1e-4, classifier.trainable_variables, classifier_loss, G, classifier, e),
    )
    best = score(classifier, x_valid, truth_valid)[0], 0.0
    weights = classifier.get_weights()
    for epoch in range(epochs):
        z_hat = play(rng, classifier, (G, D, Q), steps, x, e, Y, z_hat)
        reached = score(classifier, x_valid, truth_valid)
        if reached > best:
            best, weights = reached, classifier.get_weights()
        print(f"epoch {epoch + 1}: validation {reached[0]:.3f}")
    classifier.set_weights(weights)
    after = score(classifier, x_test, truth_test)[0]
    print(f"seed {seed}: test accuracy {before:.3f} before the game (DL-CL), {after:.3f} after it")
    return after, z_hat.argmax(axis=1), draw(rng, G, x, e, z_hat)[1]


"""
## Run it

The last line is "seed 0: test accuracy 0.960 before the game (DL-CL), 0.964 after it". The picture
shows, for four annotators, the labels that G draws by the class that the classifier predicts. Off
the diagonal are the mistakes that G has learned.
"""

if __name__ == "__main__":
    _, predicted, y = run(simulate(seed=0), seed=0)
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
    for r, axis in enumerate(axes):
        share = np.histogram2d(predicted, y[:, r], bins=np.arange(num_classes + 1))[0]
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1)
        image = axis.imshow(share, vmin=0, vmax=1, cmap="Blues")
        axis.set(title=f"annotator {r}", xlabel="label", ylabel="predicted class")
    figure.colorbar(image, ax=axes, label="share of the class")
    figure.savefig("crowding.png")

r"""
## What the paper leaves open

The gains are on LabelMe: accuracy of the other choice minus that of `neucrowd_tf`, which also
averages the classifier's weights over epochs, and repeats a DL-CL that loses a class.

| question | here | the paper, or its released code | gain of that |
|---|---|---|---|
| D's loss of authentic labels | all C entries | (4): the entry of y | -0.011 [-0.017, -0.005] |
| $\mu$ | mean of the losses | searched for | constant: -0.003 [-0.006, +0.000] |
| $G / G_0$ | at most 10, $G_0$ at least 0.001 | no bound | -0.002 [-0.005, +0.000] |
| threshold t | share of the images | value of the entropy | -0.009 [-0.013, -0.004] |
| $G_0$ for (6) | drawn after turn 2 | the last epoch's module | -0.003 [-0.006, +0.001] |
| Q learns from | generated labels | code: all labels | -0.003 [-0.007, +0.001] |
| epochs | 12, the best by validation | 40; which one predicts is not said | not measured |
| hidden units | one layer: g 64, h 128 | "two-layer", "64 and 128" | not measured |
"""
