"""How much may still be spent. Before a call goes out the most that it can cost is set aside, so
that calls under way at once never come to more than the limit together.
"""

from __future__ import annotations

import threading
from decimal import Decimal

from tape_jupyter.errors import TapeUsageError
from tape_jupyter.experiments.resending.price import CostEstimate, dollars


class Budget:
    """`max_cost` in US dollars, `max_calls`; None: no limit. Safe to use from several threads.

    `spent` is what calls cost, `unknown` what those of unknown cost were given room for.
    """

    def __init__(self, max_cost: Decimal | None = None, max_calls: int | None = None) -> None:
        self.max_cost, self.max_calls = max_cost, max_calls
        self.spent, self.unknown, self.calls = Decimal(0), Decimal(0), 0
        self._aside = Decimal(0)
        self._changed = threading.Condition()

    def require(self, estimate: CostEstimate) -> None:
        """Raises TapeUsageError where these limits cannot be kept, or none is set for calls whose
        price nobody knows.
        """
        if estimate.expected is None and self.max_calls is None:
            raise TapeUsageError(
                f"{estimate.text}: say how many calls may go out with --max-calls N. Nothing was sent"
            )
        if self.max_cost is None:
            return
        if estimate.expected is None:
            raise TapeUsageError(
                f"{estimate.text}: --max-cost cannot be kept; --max-calls alone can. Nothing was sent"
            )
        if estimate.most is None:
            raise TapeUsageError(
                "--max-cost: the request sets no limit to the tokens of its answer, so the most it can cost is not "
                "known. Set one (--set max_tokens=N). Nothing was sent"
            )
        if estimate.most > self.max_cost:
            raise TapeUsageError(
                f"--max-cost {dollars(self.max_cost)}: one call can cost {dollars(estimate.most)}. Nothing was sent"
            )

    def reserve(self, most: Decimal | None) -> bool:
        """Set this much aside for a call; waits while calls under way may leave enough. False where
        they cannot.
        """
        with self._changed:
            if self.max_calls is not None and self.calls >= self.max_calls:
                return False
            if self.max_cost is not None:
                amount = most or Decimal(0)
                while self.spent + self.unknown + self._aside + amount > self.max_cost:
                    if not self._aside:
                        return False
                    self._changed.wait()
                if self.max_calls is not None and self.calls >= self.max_calls:
                    return False
            self._aside += most or Decimal(0)
            self.calls += 1
            return True

    def full(self, most: Decimal | None) -> str:
        """Why a call that can cost `most` has no room."""
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"--max-calls {self.max_calls}: no more calls were made"
        assert self.max_cost is not None
        left = dollars(self.max_cost - self.spent - self.unknown)
        return (
            f"--max-cost: {left} is left, and one call more can cost {dollars(most or Decimal(0))}"
        )

    def record_payment(self, most: Decimal | None, paid: Decimal | None) -> None:
        """The call is done, and cost so much; where nobody knows how much, what was set aside."""
        with self._changed:
            self._aside -= most or Decimal(0)
            if paid is None:
                self.unknown += most or Decimal(0)
            else:
                self.spent += paid
            self._changed.notify_all()
