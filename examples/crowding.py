r"""
# CrowdInG: learning from crowds via generative augmentation

On average 2.5 of 59 annotators labelled each of 1,000 images. CrowdInG fills in the other labels,
in a game of four networks:

- the **classifier** C gives the class probabilities $\hat z$ of an image;
- the **generator** G gives the distribution of an annotator's label (equation 1);
- the **discriminator** D tells authentic labels from generated ones (equation 2);
- the **auxiliary network** Q guesses $\hat z$ from a generated label (equation 3).

In each epoch D and Q learn first (equation 4), then G (5), then C (6). `python crowding.py` runs on
digits in seconds; `--data_dir=labelme` reads the images. The picture shows labels that G draws.

Paper: Chu and Wang, *Improve Learning from Crowds via Generative Augmentation*, KDD 2021.
"""

import argparse

import keras
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

C = 8  # classes
k, noise_size = 32, 8  # length of all embeddings, and of epsilon
lam, t, cap, floor = 0.5, 0.5, 10.0, 1e-3  # lambda, threshold, bounds of G / G_0 and of G_0
pretrain_epochs, game_pretrain_epochs, epochs, passes = 15, 10, 12, 5

"""
## The data (section 4.1)

Y has a row for each image and a column for each annotator; -1 is a missing label. Features are
VGG-16's, averaged over the image. Validation images have true labels; these choose the epoch only.
Without a folder, 15 simulated annotators label a tenth of 500 of scikit-learn's digits.
"""


def load(data_dir):
    """Returns features and Y, then features and true labels of validation and test images."""
    x, x_valid, x_test = (
        np.sqrt(np.load(f"{data_dir}/LabelMe_VGG_avg_{part}.npy")).astype("float32")
        for part in ("train", "valid", "test")
    )
    y_valid, y_test = (np.loadtxt(f"{data_dir}/LabelMe_Z_{part}.txt") for part in ("valid", "test"))
    Y = np.loadtxt(f"{data_dir}/answers.txt").astype("int32")
    return x, Y, x_valid, y_valid, x_test, y_test


def simulate(seed):
    """Returns the same of digits 0 to 7."""
    rng = np.random.default_rng(seed)
    x, z = load_digits(n_class=C, return_X_y=True)
    train, valid, test = np.split(rng.permutation(len(x)), [500, 700])
    right = rng.random((500, 15)) < rng.uniform(0.3, 0.8, size=15)
    Y = np.where(right, z[train, None], rng.integers(C, size=(500, 15))).astype("int32")
    Y[rng.random(Y.shape) > 0.1] = -1
    return x[train], Y, x[valid], z[valid], x[test], z[test]


r"""
## The generative module (section 3.2.1)

$\hat z_n$ is the softmax output of C, whole and not a class drawn from it. It is computed again in
each epoch and is a constant for G, D and Q; only (6) passes gradients through it. G takes the
image, the annotator (a one-hot vector e), $\hat z$ and normal noise $\epsilon$, and gives

$$P(y_n^r = c | x_n, e_r, \epsilon, \hat z_n) \propto \exp g(c, x_n, e_r, \epsilon, \hat z_n)\ (1)$$

g has one hidden layer.
"""


def make_classifier(features):
    """Returns C, from standardised features to z-hat."""
    l2 = keras.regularizers.L2(5e-4)
    first = layers.Dense(128, "relu", kernel_regularizer=l2)
    last = layers.Dense(C, "softmax", kernel_regularizer=l2)
    return keras.Sequential([keras.Input((features,)), first, layers.Dropout(0.5), last])


class Generator(keras.Model):
    """Equation 1, as log probabilities `[..., C]`."""

    def __init__(self):
        super().__init__()
        self.embed_x, self.embed_e = layers.Dense(k), layers.Dense(k)
        parts = (layers.Dense(64, use_bias=False) for _ in range(3))
        self.from_x, self.from_e, self.from_noise = parts
        self.from_z, self.scores = layers.Dense(64), layers.Dense(C)

    def call(self, x, e, z, noise):
        hidden = self.from_x(self.embed_x(x)) + self.from_e(self.embed_e(e))
        hidden = tf.nn.relu(hidden + self.from_z(z) + self.from_noise(noise))
        return tf.nn.log_softmax(self.scores(hidden))


r"""
## The discriminative module (section 3.2.2)

D scores each class of a pair by $D(c | x_n, e_r) = \sigma(u_r^\top M_c v_n)$ (2), with affine
encodings u of the annotator and v of the image. The *LCA decoder* replaces the $M_c$ by a graph
convolution $\hat D^{-1/2} (A + I) \hat D^{-1/2} M W$; A counts how often two annotators give two
classes to one image. Here A has a zero diagonal and is divided by its largest row sum, or I would
vanish next to the counts. So classes that annotators give to the same image share their $M_c$, and
D finds both plausible. Q reuses u, v and, for the label, $M_c$.

(4) as published is $\log D(y)$ of authentic labels plus $\log(1 - D(y))$ of generated ones. D could
only win that by lowering the labels that are generated most, the right ones. D is a multi-label
classifier; so an authentic label costs the cross-entropy of all C entries here, and a generated one
$-\log(1 - D(y))$. The "L2 norm" of D's outputs is the mean of $D^2$. The information loss (3) is
the mean of $\sum_c \hat z_c \log Q(c | y)$ over generated labels plus $H(\hat z)$, a constant while
C is fixed. Both losses move u and v.
"""


def label_correlation(Y):
    """Returns the graph convolution's matrix `[C, C]`, section 3.2.2."""
    votes = np.stack([np.sum(c == Y, axis=1) for c in range(C)], axis=1).astype(float)
    A = votes.T @ votes
    np.fill_diagonal(A, 0)
    A = A / A.sum(axis=1).max() + np.eye(C)
    return (A / np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))).astype("float32")


class Judges(keras.Model):
    """D, equation 2 as logits of all classes `[..., C]`, and log Q(z | x, e, y) `[..., C]`."""

    def __init__(self, correlation):
        super().__init__()
        normal = keras.initializers.RandomNormal(stddev=1 / k)
        self.correlation = tf.constant(correlation)
        self.encode_x, self.encode_e = layers.Dense(k), layers.Dense(k)  # v and u
        self.M = self.add_weight(shape=(C, k, k), initializer=normal, name="M")
        self.W = self.add_weight(shape=(k, k), initializer="orthogonal", name="W")
        self.embed_label, self.from_label = layers.Dense(k), layers.Dense(128)
        self.from_x, self.from_e = (layers.Dense(128, use_bias=False) for _ in range(2))
        self.scores = layers.Dense(C)

    def call(self, x, e, y):
        v, u = self.encode_x(x), self.encode_e(e)
        M = tf.einsum("cd,dkl,lj->ckj", self.correlation, self.M, self.W)
        logits = tf.reduce_sum(tf.einsum("...k,ckl->...cl", u, M) * v[..., None, :], axis=-1)
        from_label = self.from_label(self.embed_label(tf.reshape(M, [C, k * k])))
        hidden = tf.nn.relu(self.from_x(v) + self.from_e(u) + tf.gather(from_label, y))
        return logits, tf.nn.log_softmax(self.scores(hidden))


def at(values, y):
    """Returns the entries of `[..., C]` at labels `[...]`."""
    return tf.gather(values, y, axis=-1, batch_dims=len(y.shape))


def judges_loss(judges, x, e, y, authentic, z):
    """Returns what D and Q minimise, equations 3 and 4 (without H) of annotations `[P]`."""
    logits, log_q = judges(x, e, y)
    every = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.one_hot(y, C), logits=logits)
    losses = tf.where(authentic, tf.reduce_sum(every, axis=1), tf.nn.softplus(at(logits, y)))
    information = tf.boolean_mask(tf.reduce_sum(z * log_q, axis=1), ~authentic)
    sparsity = tf.reduce_mean(tf.square(tf.sigmoid(logits)))
    return tf.reduce_mean(losses) + sparsity - lam * tf.reduce_mean(information)


"""
## Which annotations D sees (section 3.3.1)

All authentic annotations, and as many generated ones of each annotator. These are drawn among the
annotator's missing labels without replacement, in proportion to 1 / entropy of G's distribution, so
mostly labels that G is sure of; the largest logarithms plus Gumbel noise are such a draw. G, in its
turn, is judged on labels of all annotators.
"""


def select(rng, log_g, Y):
    """Returns rows and annotators of the selected cells, for log_g `[N, R, C]`."""
    entropy = -np.sum(np.exp(log_g) * log_g, axis=-1)
    keys = rng.gumbel(size=entropy.shape) - np.log(np.maximum(entropy, 1e-6))
    order = np.argsort(np.where(Y >= 0, np.inf, -keys), axis=0)
    given = (Y >= 0).sum(axis=0)
    counts = np.minimum(given, len(Y) - given)
    rows = np.concatenate([order[:count, r] for r, count in enumerate(counts)])
    return rows, np.repeat(np.arange(len(counts)), counts)


r"""
## Gradients in spite of drawn labels (section 3.3.2)

Labels are drawn, and no gradient passes through a draw. So each label keeps the probability $G_0$
that it was drawn with, and its loss counts by how much more probable it has become:

$$\frac{1}{NR} \sum_{n, r} (\delta(y_n^r) - \mu) \frac{G_\theta(y_n^r)}{G_0(y_n^r)} \quad (5), (6)$$

G minimises (5) with $\delta = L_G - \lambda L_I$, where $L_G = \log(1 - D(y))$. C minimises (6),
the same with $L_G$ for $\delta$: the gradient goes through $\hat z$ and the fixed generator to C's
weights. $\mu$ is the mean of the losses here; at 0, (6) would make every drawn label more probable.
"""


def rewards(judges, x, e, y, z):
    """Returns L_G and delta of drawn labels, section 3.3.2."""
    logits, log_q = judges(x, e, y)
    L_G = -tf.nn.softplus(at(logits, y))
    return L_G, L_G - lam * tf.reduce_sum(z * log_q, axis=-1)


def generator_loss(G, e, x, noise, z, y, G_0, losses, mu):
    """Returns equation 5 of images `[B]` by all annotators."""
    log_g = G(x[:, None], e, z[:, None], noise)
    ratio = tf.minimum(tf.exp(at(log_g, y)) / tf.maximum(G_0, floor), cap)
    return tf.reduce_mean((losses - mu) * ratio)


def classifier_loss(G, classifier, e, x, noise, _, *rest):
    """Returns equation 6: equation 5 with the z-hat that C gives now, and L_G for delta."""
    return generator_loss(G, e, x, noise, classifier(x), *rest)


r"""
## Training (section 3.3.3)

C starts as DL-CL, the crowd layer of Rodrigues and Pereira (2018): an annotator's matrix turns
$\hat z$ into logits of labels. Then G learns the authentic labels, and D and Q learn against G. In
the game, the share t of the images with the least entropy of $\hat z$ goes to G, the rest to C.
"""


def dl_cl_loss(classifier, W, x, Y):
    """Returns the mean cross-entropy of the crowd layer, with matrices W `[R, C, C]`."""
    logits = tf.einsum("nc,rcd->nrd", classifier(x, training=True), W.value)[Y >= 0]
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(Y[Y >= 0], logits)
    return tf.reduce_mean(losses) + tf.add_n(classifier.losses)


def trainer(rate, variables, loss, *first):
    """Returns a compiled step of Adam on a loss of `first` and a batch."""
    optimizer = keras.optimizers.Adam(rate)

    @tf.function(reduce_retracing=True)
    def step(*rows):
        with tf.GradientTape() as tape:
            value = loss(*first, *rows)
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables, strict=True))

    return step


def likelihood_loss(G, y, *inputs):
    """Returns minus the mean log probability of labels."""
    return -tf.reduce_mean(at(G(*inputs), y))


def by_entropy(z):
    """Returns the images in the order of the entropy of z `[N, C]`."""
    return np.argsort(-np.sum(z * np.log(np.maximum(z, 1e-30)), axis=1), kind="stable")


def accuracy(classifier, x, y):
    """Returns the share of true labels y."""
    return np.mean(classifier(x).numpy().argmax(axis=1) == y)


def dl_cl(x, Y, batches):
    """Returns DL-CL's classifier."""
    classifier = make_classifier(x.shape[1])
    W = keras.Variable(np.tile(np.eye(C, dtype="float32"), (Y.shape[1], 1, 1)))
    step = trainer(1e-3, [*classifier.trainable_variables, W], dl_cl_loss, classifier, W)
    for b in batches:
        step(x[b], Y[b])
    return classifier


def standardised(x, Y, x_valid, y_valid, x_test, y_test):
    """Returns the data with features of mean 0 and variance 1."""
    scaler = StandardScaler().fit(x)
    x, x_valid, x_test = (scaler.transform(part).astype("float32") for part in (x, x_valid, x_test))
    return x, Y, x_valid, y_valid, x_test, y_test


def run(data, seed):
    """Returns the test accuracy, and classes that C predicts `[N]` and labels of G `[N, R]`."""
    x, Y, x_valid, y_valid, x_test, y_test = standardised(*data)
    keras.utils.set_random_seed(seed)
    rng, (N, R) = np.random.default_rng(seed), Y.shape
    e, (n_0, r_0) = np.eye(R, dtype="float32"), np.nonzero(Y >= 0)  # annotators, authentic cells

    def batches(size, most, times):
        for _ in range(times):
            yield from np.array_split(rng.permutation(size), -(-size // most))

    def draw(rows, z):  # labels of images by all annotators, with their noise, G_0 and log G
        noise = rng.standard_normal((len(rows), R, noise_size)).astype("float32")
        log_g = G(x[rows, None], e, z[rows, None], noise).numpy()
        y = (log_g + rng.gumbel(size=log_g.shape)).argmax(axis=-1).astype("int32")
        return noise, y, np.exp(at(log_g, y).numpy()), log_g

    def judges_turn(step, times):
        _, drawn, _, log_g = draw(np.arange(N), z)
        n, r = select(rng, log_g, Y)
        y = np.concatenate([Y[n_0, r_0], drawn[n, r]])  # authentic labels stand first
        n, r = np.concatenate([n_0, n]), np.concatenate([r_0, r])
        for b in batches(len(n), 512, times):
            step(x[n[b]], e[r[b]], y[b], b < len(n_0), z[n[b]])

    def generative_turn(step, rows, which):
        noise, y, G_0, _ = draw(rows, z)
        losses = rewards(judges, x[rows, None], e, y, z[rows, None])[which].numpy()
        for b in batches(len(rows), 100, passes):
            step(x[rows[b]], noise[b], z[rows[b]], y[b], G_0[b], losses[b], losses.mean())

    classifier = dl_cl(x, Y, batches(N, 64, pretrain_epochs))
    z = classifier(x).numpy()
    G, judges = Generator(), Judges(label_correlation(Y))
    generative_turn(lambda *_: None, np.arange(1), 0)  # builds the layers
    step = trainer(1e-3, G.trainable_variables, likelihood_loss, G)
    for b in batches(len(n_0), 64, game_pretrain_epochs):
        noise = rng.standard_normal((len(b), noise_size)).astype("float32")
        step(Y[n_0[b], r_0[b]], x[n_0[b]], e[r_0[b]], z[n_0[b]], noise)
    of_judges = [trainer(1e-3, judges.trainable_variables, judges_loss, judges) for _ in range(2)]
    for _ in range(game_pretrain_epochs):
        judges_turn(of_judges[0], 1)
    of_G = trainer(3e-4, G.trainable_variables, generator_loss, G, e)
    of_C = trainer(1e-4, classifier.trainable_variables, classifier_loss, G, classifier, e)
    best, weights = (accuracy(classifier, x_valid, y_valid), 0.0), classifier.get_weights()
    first = accuracy(classifier, x_test, y_test)
    for epoch in range(epochs):
        judges_turn(of_judges[1], passes)
        sure, unsure = np.split(by_entropy(z), [round(t * N)])
        generative_turn(of_G, sure, 1)
        generative_turn(of_C, unsure, 0)
        z, p = classifier(x).numpy(), classifier(x_valid).numpy()
        score = np.mean(p.argmax(axis=1) == y_valid), -log_loss(y_valid, p, labels=range(C))
        if score > best:
            best, weights = score, classifier.get_weights()
        print(f"epoch {epoch + 1}: validation {score[0]:.3f}")
    classifier.set_weights(weights)
    last = accuracy(classifier, x_test, y_test)
    print(f"seed {seed}: test accuracy {last:.3f}, DL-CL {first:.3f}")
    return last, z.argmax(axis=1), draw(np.arange(N), z)[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", help="folder of LabelMe_VGG_avg_*.npy and answers.txt")
    data_dir = parser.parse_known_args()[0].data_dir
    _, predicted, y = run(load(data_dir) if data_dir else simulate(seed=0), seed=0)
    figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
    for r, axis in enumerate(axes):
        axis.hist2d(y[:, r], predicted, bins=np.arange(C + 1), cmap="Blues")
        axis.set(title=f"annotator {r}", xlabel="label", ylabel="C's class")
    figure.savefig("crowding.png")
r"""
## What the paper leaves open

The gains are on LabelMe: accuracy of the other choice minus that of `neucrowd_tf`, which averages
C's weights over epochs, repeats a DL-CL that loses a class, and has 0.862 [0.856, 0.868] (10 seeds,
95% intervals). DL-CL has 0.847 [0.842, 0.851]; the paper publishes 0.870.

| question | here | the paper, or its released code | gain of that |
|---|---|---|---|
| D's loss of authentic labels | all C entries | (4): the entry of y | -0.011 [-0.017, -0.005] |
| $\mu$ | mean of the losses | searched for | constant: -0.003 [-0.006, +0.000] |
| $G / G_0$ | at most 10, $G_0$ at least 0.001 | no bound | -0.002 [-0.005, +0.000] |
| threshold t | share of the images | value of the entropy | -0.009 [-0.013, -0.004] |
| $G_0$ for (6) | drawn after G's turn | the last epoch's module | -0.003 [-0.006, +0.001] |
| Q learns from | generated labels | code: all labels | -0.003 [-0.007, +0.001] |
| epochs | 12, the best by validation | the last of 40 | not measured |
"""
