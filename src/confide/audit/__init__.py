"""The audit: attempts to break a stated guarantee, on any function or method, with the rate of false alarms fixed beforehand.

| question | call |
| --- | --- |
| Is a sensitivity right? | `falsify_sensitivity`, `falsify_safety_bound` |
| Is a data-dependent loss right? | `falsify_loss` |
| What does a mechanism spend at least, by its runs? | `epsilon_lower_bound`, `mu_lower_bound`, `trade_off_band` |
| And by the known law of its noise, exactly? | `audit_law`, `audit_exponential`, `audit_probabilities` |
| Does the noise follow the stated distribution? | `noise_scale_test` |
| And by a single run? | `one_run_audit` |
| Does a method release anything but its declared statistics? | `replay` |
| All of it, for a method | `audit` |

An audit can refute a claim; it never proves one. "holds" means that nothing was found.
"""

from confide.audit.methods import audit
from confide.audit.replay.replay import Replay, replay
from confide.audit.runs.attacks import Canaries, one_run_audit, one_run_epsilon, one_run_gaussian, one_run_mu
from confide.audit.runs.curve_band import CurveBand, noise_scale_test, trade_off_band
from confide.audit.runs.known_distributions import audit_exponential, audit_law, audit_probabilities, exact_knots
from confide.audit.runs.lower_bounds import epsilon_lower_bound, mu_lower_bound
from confide.audit.searches.loss import LossReport, falsify_loss
from confide.audit.searches.safety import SafetyReport, falsify_safety_bound
from confide.audit.searches.sensitivity import SensitivityReport, falsify_sensitivity
from confide.audit.verdict import Audit, Finding

__all__ = [
    "Audit",
    "Canaries",
    "CurveBand",
    "Finding",
    "LossReport",
    "Replay",
    "SafetyReport",
    "SensitivityReport",
    "audit",
    "audit_exponential",
    "audit_law",
    "audit_probabilities",
    "epsilon_lower_bound",
    "exact_knots",
    "falsify_loss",
    "falsify_safety_bound",
    "falsify_sensitivity",
    "mu_lower_bound",
    "noise_scale_test",
    "one_run_audit",
    "one_run_epsilon",
    "one_run_gaussian",
    "one_run_mu",
    "replay",
    "trade_off_band",
]
