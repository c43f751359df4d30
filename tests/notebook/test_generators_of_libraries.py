"""Random generators that cells hand to objects of libraries: these draw from the generator itself, at any time, as in Python."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
IMPORTS = """from scipy import stats
from scipy.sparse import random_array
from scipy.stats.qmc import Halton, Sobol
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold, ShuffleSplit, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils import check_random_state, shuffle
old, new = np.random.RandomState(4), np.random.default_rng(3)
"""
X = "X = {old}.normal(size=(20, 2))\n"
PROGRAMS = {
    "an estimator": X + "found = KMeans(2, n_init=1, random_state={old}).fit(X).labels_\ny = {old}.normal(size=2)",
    "an estimator that is fitted later": "k = KMeans(2, n_init=1, random_state={old})\n"
    + X
    + "k.fit(X)\nfound = k.labels_\ny = {old}.normal()",
    "several": X + "p = make_pipeline(PCA(1, random_state={old}), KMeans(2, n_init=1, random_state={old})).fit(X)\n"
    "found = p.predict(X)\ny = {old}.randint(9, size=4), {old}.permutation(4), {old}.bytes(3)",
    "parts that are drawn in a loop": X
    + "k = KFold(2, shuffle=True, random_state={old})\nfound = [a.tolist() for a, _ in k.split(X)]\ny = {old}.rand()",
    "a function that keeps nothing": X
    + "found = train_test_split(X, random_state={old})[0] + shuffle(X, random_state={old})[:15]\ny = {old}.rand()",
    "a function that gives it back": "r = check_random_state({old})\nfound = r.normal(size=3), {old}.normal()\ny = r.normal()",
    "points": "h = Halton(2, seed={new})\nfound = h.random(3), Sobol(1, seed={new}).random(2)\ny = {new}.normal(), {new}.choice(5, 3)",
    "a sparse matrix": "found = random_array((4, 4), density=0.5, random_state={new}).toarray()\ny = {new}.random(3)",
    "a distribution": "d = stats.norm(0, 1)\nd.random_state = {new}\nfound = d.rvs(3)\ny = {new}.random()\nz = d.rvs(2)",
    "a distribution with its seed": "d = stats.multivariate_normal(np.ones(2), np.eye(2) * 2, seed={new})\n"
    "found = d.rvs(3)\ny = {new}.random()\nz = d.logpdf(found)",
    "a generator in an object": "class Data:\n    def __init__(self, rng): self.rng = rng\n    def make(self):\n"
    "        return self.rng.normal(size=(20, 2))\n"
    "data = Data({old})\nX = data.make()\nk = KFold(2, shuffle=True, random_state=data.rng)\nclf = SGDClassifier(random_state=data.rng)\n"
    "found = clf.fit(X, X[:, 0] > 0).coef_, [a.tolist() for a, _ in k.split(X)]\ny = data.make()[0]",
    "methods that a library calls": "more = lambda size: {new}.normal(size=size) + 1\n"
    "p = stats.power(stats.ttest_ind, ({new}.normal, more), (4, 5), n_resamples=3)\n"
    "found = p.pvalues\ny = {new}.normal()",
    "a distribution with a parameter that is called dist": "v = stats.nchypergeom_fisher(140, 80, 60, 0.5)\n"
    "found = v.rvs(3, random_state={new}), v.pmf([30, 31])\ny = {new}.normal()",
    "a branch after it": X + "k = KMeans(2, n_init=1, random_state={old}).fit(X)\nfound = 0.0\nfor _ in range(3):\n"
    "    if X[0, 0] > -9:\n        found = found + {old}.normal() * X[0, 1]\ny = {old}.normal()",
    "its state and its output": "h = Halton(2, seed={new})\nfound = str({new}.bit_generator.state['state']['state']), h.rng is {new}\n"
    "y = np.zeros(3)\n{new}.standard_normal(out=y)",
}
MADE = {"old": "np.random.RandomState(4)", "new": "np.random.default_rng(3)"}


def text(values):
    return repr(
        [
            np.asarray(v).tolist() if not isinstance(v, (list, tuple)) else [np.asarray(i).tolist() for i in v]
            for v in values
        ]
    )


def run(notebook, program, magic):
    notebook.ok(IMPORTS)
    ran = notebook(magic + program)
    assert ran.error is None, ran.out
    names = ("found", "y", "z") if "\nz =" in program else ("found", "y")
    notebook.ok("after = old.normal(), new.normal()")
    return text([notebook[n] for n in (*names, "after")])


@pytest.mark.parametrize("made", ["in the cell", "before it"])
@pytest.mark.parametrize("how", PROGRAMS)
def test_they_draw_as_in_python(notebook, how, made):
    program = PROGRAMS[how]
    first = "".join(f"{name} = {MADE[name]}\n" for name in MADE if made == "in the cell" and f"{{{name}}}" in program)
    program = first + program.format(old="old", new="new")
    assert run(notebook, program, "%%tensor -q\n") == run(notebook, program, "")


def test_a_cell_that_fails_leaves_a_generator_that_it_has_handed_on_as_it_was(notebook):
    notebook.ok(IMPORTS + "state = str(old.get_state())")
    failed = notebook(
        "%%tensor\nX = old.normal(size=(20, 2))\nKMeans(2, n_init=1, random_state=old).fit(X)\nX + np.ones(3)"
    )
    assert failed.error is not None
    notebook.ok("same = str(old.get_state()) == state")
    assert notebook["same"] is True
