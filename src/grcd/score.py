"""Parameterisations: how a network output becomes a noise prediction ``eps_hat`` (section 3.3, appendix A.3).

Both regress on the noise of ``x~ = x_0 + q eps``, from what the network sees: the signal in graph coordinates and the
time. They differ in the part that is known beforehand:

    epsilon     eps_hat = f_theta                              target  f* = eps
    residual    eps_hat = q (Sigma + q^2 I)^-1 x~ + f_theta    target  f* = eps - q (Sigma + q^2 I)^-1 x~

In graph coordinates the second is eq. score, ``s_i = -x_i/gamma_i - f_i/eta_i``, and its target eq. loss, since
``eta_i x_i / gamma_i = q x~_i / (v_i + q^2)``. Either way the best network gives ``eps_hat = E[eps | x~]``, hence the
marginal score ``-eps_hat / q``; where data are Gaussian with covariance ``Sigma`` the best residual is zero.

``q`` is a float (one level for the batch) or a tensor (batch, 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .errors import unknown
from .process import ConjugateProcess
from .reference import Gaussian


@dataclass(frozen=True)
class Epsilon:
    """The network predicts the noise itself."""

    process: ConjugateProcess

    def known(self, x: Tensor, q) -> Tensor | float:
        """The part of ``eps_hat`` that needs no network."""
        return 0.0

    def target(self, x: Tensor, eps: Tensor, q) -> Tensor:
        """What the network is trained on, for ``x~ = x_0 + q eps``."""
        return eps - self.known(x, q)

    def output(self, network: nn.Module, x: Tensor, q) -> Tensor:
        """``f_theta``, from the signal in graph coordinates and the time."""
        t = self.process.t(q)
        if not isinstance(t, Tensor):
            t = torch.full(
                (), t, dtype=x.dtype, device=x.device
            )  # made on the device: a copy from the host could not be captured
        return network(self.process.to_graph(x, q), t).to(x.dtype)

    def eps_hat(self, network: nn.Module) -> Callable[[Tensor, float], Tensor]:
        """The noise prediction as the solvers want it."""
        return lambda x, q: self.known(x, q) + self.output(network, x, q)

    def losses(
        self, network: nn.Module, x0: Tensor, eps: Tensor, q: Tensor, weight: Tensor | None = None
    ) -> Tensor:  # (batch,)
        """The denoising objective for each signal (eq. loss); modes or nodes, the mean square is the same.

        Where entries of ``x0`` were not observed, ``weight`` (batch, nodes) says what each node counts.
        """
        x = x0 + q * eps
        square = (self.output(network, x, q) - self.target(x, eps, q)).square()
        return (square if weight is None else weight * square).mean(-1)


@dataclass(frozen=True)
class Residual(Epsilon):
    """The network predicts what the Gaussian reference leaves over."""

    reference: Gaussian

    def known(self, x: Tensor, q) -> Tensor:
        return self.reference.eps(x, q)


PARAMETERISATIONS = ("residual", "epsilon")


def make(name: str, process: ConjugateProcess, reference: Gaussian) -> Epsilon:
    if name not in PARAMETERISATIONS:
        raise unknown("parameterisation", name, PARAMETERISATIONS)
    return Residual(process, reference) if name == "residual" else Epsilon(process)
