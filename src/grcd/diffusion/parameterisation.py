"""Parameterisations: how a network output becomes a noise prediction ``eps_hat`` (section 3.3, appendix A.3).

All regress on the noise of ``x~ = x_0 + q eps``; they differ in what the network sees and in what is known beforehand.
Each is an affine map between a noise prediction and a network output: ``target`` turns the one into the other and
``decoded`` turns it back, so the objective is ``|F_theta - target(x~, eps, q)|^2`` for every one of them.

    epsilon          eps = F                              sees A_t x~ and t
    residual         eps = q (Sigma + q^2 I)^-1 x~ + F    sees A_t x~ and t               (GRCD)
    whitened         eps = -q / (a (v + q^2)) F           sees A_t x~ and t               (WSD-style)
    preconditioned   x_0 = c_skip x~ + c_out F            sees c_in x~ and log(q) / 4     (EDM, controls)
    denoised         x_0 = F, on the heat process         sees x and t                    (GAD)

In graph coordinates the residual is eq. score, ``s_i = -x_i/gamma_i - f_i/eta_i``, and its target eq. loss, since
``eta_i x_i / gamma_i = q x~_i / (v_i + q^2)``. The whitened score is the score times the reference's covariance in
those coordinates, ``F_i = gamma_i s_i``. Whatever the parameterisation, the best network gives
``eps_hat = E[eps | x~]``, hence the marginal score ``-eps_hat / q``; where data are Gaussian with covariance ``Sigma``
the best residual is zero.

A sampler takes a ``Prediction``: the noise that a network predicts, and what it adds to the reference. A residual
network says the latter itself, so that the reference is evaluated once a step, by whoever needs it.

``q`` is a float (one level for the batch) or a tensor (batch, 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from ..core.errors import unknown
from ..references.component import Component
from ..references.gaussian import Gaussian
from ..references.propagator import Level
from ..references.reference import Reference
from .process import ConjugateProcess, HeatProcess, Process, VEProcess

EpsHat = Callable[[Tensor, float], Tensor]


class Prediction:
    """A noise prediction ``eps_hat(x~, q)``, and its residual ``f = eps_hat - eps_ref`` beside a reference.

    Arguments: ``eps_hat``; and ``residual``, where that is known by itself beside the reference that is always the one
    asked about.
    """

    def __init__(self, eps_hat: EpsHat, residual: EpsHat | None = None):
        self._eps_hat, self._residual = eps_hat, residual

    def __call__(self, x: Tensor, q: float) -> Tensor:
        return self._eps_hat(x, q)

    def residual(self, x: Tensor, q: float, reference: Reference) -> Tensor:
        """What is left over by the reference."""
        return self._eps_hat(x, q) - reference.eps(x, q) if self._residual is None else self._residual(x, q)


@dataclass(frozen=True)
class Parameterisation(ABC):
    """What a network output stands for, on one process."""

    process: Process

    @property
    def adds(self) -> bool:
        """Whether an output of zero leaves the reference as it is."""
        return False

    @abstractmethod
    def target(self, x: Tensor, eps: Tensor, q: Level) -> Tensor:
        """The output that stands for this noise; what the network is trained on, for ``x~ = x_0 + q eps``."""

    @abstractmethod
    def decoded(self, x: Tensor, output: Tensor, q: Level) -> Tensor:
        """The noise that this output stands for."""

    def corrupted(self, x0: Tensor, eps: Tensor, q: Level) -> Tensor:
        """What a signal becomes by this noise."""
        return x0 + q * eps

    def cleaned(self, x: Tensor, output: Tensor, q: Level) -> Tensor:
        """The signal that this output stands for, ``x_0 = x~ - q eps_hat``."""
        return x - q * self.decoded(x, output, q)

    def of_reference(self, reference: Reference, x: Tensor, q: Level) -> Tensor:
        """The output that stands for what the reference alone predicts."""
        return self.target(x, reference.eps(x, q), q)

    def seen(self, x: Tensor, q: Level) -> Tensor:
        """What the network looks at: the signal in graph coordinates."""
        return self.process.to_graph(x, q)

    def output(self, network: nn.Module, x: Tensor, q: Level) -> Tensor:
        """``F_theta``."""
        t = self.process.t(q)
        if not isinstance(t, Tensor):  # made on the device: a copy from the host could not be captured
            t = torch.full((), t, dtype=x.dtype, device=x.device)
        return network(self.seen(x, q), t).to(x.dtype)

    def prediction(self, network: nn.Module) -> Prediction:
        """What solvers on this process take."""
        return Prediction(lambda x, q: self.decoded(x, self.output(network, x, q), q))

    def losses(
        self, network: nn.Module, x0: Tensor, eps: Tensor, q: Tensor, weight: Tensor | None = None
    ) -> Tensor:  # (batch,)
        """The denoising objective for each signal (eq. loss); modes or nodes, the mean square is the same.

        Where entries of ``x0`` were not observed, ``weight`` (batch, nodes) says what each node counts.
        """
        x = self.corrupted(x0, eps, q)
        square = (self.output(network, x, q) - self.target(x, eps, q)).square()
        return (square if weight is None else weight * square).mean(-1)

    def baseline(self, reference: Reference, x0: Tensor, eps: Tensor, q: Tensor) -> Tensor:  # (batch, nodes)
        """The squared error, in the same terms, of the noise that the reference alone predicts."""
        x = self.corrupted(x0, eps, q)
        return (self.of_reference(reference, x, q) - self.target(x, eps, q)).square()

    def signal_error(
        self, predict: nn.Module | Reference, x0: Tensor, eps: Tensor, q: Tensor
    ) -> Tensor:  # (batch, nodes)
        """The squared error of the denoised signal, the same quantity whatever the parameterisation: of a network's, or
        of what a reference alone makes of it."""
        x = self.corrupted(x0, eps, q)
        output = self.of_reference(predict, x, q) if isinstance(predict, Reference) else self.output(predict, x, q)
        return (self.cleaned(x, output, q) - x0).square()


@dataclass(frozen=True)
class Epsilon(Parameterisation):
    """The network predicts the noise itself."""

    def target(self, x: Tensor, eps: Tensor, q: Level) -> Tensor:
        return eps

    def decoded(self, x: Tensor, output: Tensor, q: Level) -> Tensor:
        return output


@dataclass(frozen=True)
class Residual(Parameterisation):
    """The network predicts what the reference leaves over."""

    reference: Reference
    adds = True

    def target(self, x: Tensor, eps: Tensor, q: Level) -> Tensor:
        return eps - self.reference.eps(x, q)

    def decoded(self, x: Tensor, output: Tensor, q: Level) -> Tensor:
        return self.reference.eps(x, q) + output

    def prediction(self, network: nn.Module) -> Prediction:
        prediction = super().prediction(network)
        return Prediction(prediction, lambda x, q: self.output(network, x, q))


@dataclass(frozen=True)
class Whitened(Parameterisation):
    """The network predicts the score times the covariance ``gamma`` of a reference (spectral or scalar)."""

    process: ConjugateProcess
    reference: Gaussian

    def _gain(self, q: Level) -> Tensor:
        """``-gamma_i / eta_i = -a_i (v_i + q^2) / q``."""
        return -self.process.a(q) * self.reference.variance(q) / q

    def target(self, x: Tensor, eps: Tensor, q: Level) -> Tensor:
        return self.process.nodes(self.process.modes(eps) * self._gain(q))

    def decoded(self, x: Tensor, output: Tensor, q: Level) -> Tensor:
        return self.process.nodes(self.process.modes(output) / self._gain(q))


@dataclass(frozen=True)
class Preconditioned(Parameterisation):
    """EDM's preconditioning ``x_0 = c_skip x~ + c_out F(c_in x~)`` for data of variance 1 at every node.

    The weighting ``1/c_out^2`` makes the objective the plain square of ``F``.
    """

    def coefficients(self, q: Level) -> tuple[Level, Level, Level]:
        """``c_skip, c_in, c_out``: numbers here, one a mode where the graph shapes them."""
        total = 1 + q**2
        return 1 / total, total**-0.5, q * total**-0.5

    def scaled(self, x: Tensor, by: Level) -> Tensor:
        return x * by

    def seen(self, x: Tensor, q: Level) -> Tensor:
        return self.scaled(x, self.coefficients(q)[1])

    def target(self, x: Tensor, eps: Tensor, q: Level) -> Tensor:
        skip, _, out = self.coefficients(q)  # (x_0 - c_skip x~) / c_out with x_0 = x~ - q eps
        return self.scaled(x, (1 - skip) / out) - self.scaled(eps, q / out)

    def decoded(self, x: Tensor, output: Tensor, q: Level) -> Tensor:
        skip, _, out = self.coefficients(q)
        return self.scaled(x, (1 - skip) / q) - self.scaled(output, out / q)


@dataclass(frozen=True)
class StaticPreconditioned(Preconditioned):
    """The same, but what the network sees has passed the fixed graph filter ``(I + L_delta)^-1/2``."""

    process: ConjugateProcess | VEProcess

    def seen(self, x: Tensor, q: Level) -> Tensor:
        p = self.process
        return p.nodes(p.modes(super().seen(x, q)) * (1 + p.mu) ** -0.5)


@dataclass(frozen=True)
class ConjugatePreconditioned(Preconditioned):
    """Shaped by the graph at every level: ``c_skip = a^2``, ``c_in = a``, ``c_out = q a`` with GRCD's ``a_i(q)``."""

    process: ConjugateProcess | VEProcess

    def coefficients(self, q: Level) -> tuple[Level, Level, Level]:
        a2 = 1 / (1 + self.process.mu * q**2)
        return a2, a2**0.5, q * a2**0.5

    def scaled(self, x: Tensor, by: Level) -> Tensor:
        return self.process.nodes(self.process.modes(x) * by)


@dataclass(frozen=True)
class Denoised(Parameterisation):
    """GAD: the network predicts ``x_0`` from ``x = H x_0 + sqrt(Sigma) eps``, by its time ``t`` in place of ``q``.

    The objective is the mean of ``(x_0_hat - x_0)^2 / (1 + 2 sigma^2 c)`` plus 0.005 times the total variation
    ``x_0_hat' L x_0_hat``, ``L`` the combinatorial Laplacian: summed over nodes, as in GAD's release.
    """

    process: HeatProcess
    tv: float = 5e-3

    def corrupted(self, x0: Tensor, eps: Tensor, t: Level) -> Tensor:
        p = self.process
        return p.nodes(p.modes(x0) * p.a(t) + p.modes(eps) * p.variance(t).sqrt())

    def cleaned(self, x: Tensor, output: Tensor, t: Level) -> Tensor:
        return output

    def of_reference(self, reference: Reference, x: Tensor, t: Level) -> Tensor:
        """Its posterior mean of ``x_0``, in whose basis the process is diagonal."""
        p, v = self.process, cast(Component, reference.parts[0]).v
        return p.nodes(p.modes(x) * v * p.a(t) / (v * p.a(t) ** 2 + p.variance(t)))

    def seen(self, x: Tensor, t: Level) -> Tensor:
        return x

    def target(self, x: Tensor, eps: Tensor, t: Level) -> Tensor:
        """The signal, from what it became and the noise in it."""
        p = self.process
        return p.nodes((p.modes(x) - p.modes(eps) * p.variance(t).sqrt()) / p.a(t))

    def decoded(self, x: Tensor, output: Tensor, t: Level) -> Tensor:
        """The score ``-(x - H x_0_hat) / Sigma``, which the sampler of this process takes in place of a noise."""
        p = self.process
        return -p.nodes((p.modes(x) - p.a(t) * p.modes(output)) / p.variance(t))

    def losses(self, network: nn.Module, x0: Tensor, eps: Tensor, t: Tensor, weight: Tensor | None = None) -> Tensor:
        p = self.process
        x0_hat = self.output(network, self.corrupted(x0, eps, t), t)
        square = (x0_hat - x0).square()
        fit = (square if weight is None else weight * square).mean(-1, keepdim=True)
        return (fit / (1 + 2 * p.sigma**2 * p.c(t))).squeeze(-1) + self.tv * p.variation(x0_hat)

    def baseline(self, reference: Reference, x0: Tensor, eps: Tensor, t: Tensor) -> Tensor:
        x = self.corrupted(x0, eps, t)
        return (self.of_reference(reference, x, t) - x0).square() / (1 + 2 * self.process.sigma**2 * self.process.c(t))


def make(name: str, process: Process, reference: Reference) -> Parameterisation:
    if name not in PARAMETERISATIONS:
        raise unknown("parameterisation", name, PARAMETERISATIONS)
    return PARAMETERISATIONS[name](process, reference)


PARAMETERISATIONS: dict[str, Callable[..., Parameterisation]] = {
    "epsilon": lambda process, reference: Epsilon(process),
    "residual": Residual,
    "whitened-scalar": lambda process, reference: Whitened(process, reference.scalar()),
    "whitened-graph": Whitened,
    "preconditioned": lambda process, reference: Preconditioned(process),
    "preconditioned-static": lambda process, reference: StaticPreconditioned(process),
    "preconditioned-conjugate": lambda process, reference: ConjugatePreconditioned(process),
    "denoised": lambda process, reference: Denoised(process),
}
