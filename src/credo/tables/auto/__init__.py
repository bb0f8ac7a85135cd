"""`method="auto"`: which method, network and likelihood a table gets when nobody says, and why (I1)."""

from credo.tables.auto.choice import AUTO as AUTO
from credo.tables.auto.choice import Choice as Choice
from credo.tables.auto.choice import choose as choose
from credo.tables.auto.choice import choose_for as choose_for
from credo.tables.auto.choice import choose_for_model as choose_for_model
from credo.tables.auto.choice import count as count
from credo.tables.auto.choice import settle as settle
from credo.tables.auto.choice import without_likelihood as without_likelihood
from credo.tables.auto.pilot import chosen_for as chosen_for
from credo.tables.auto.pilot import chosen_for_model as chosen_for_model
from credo.tables.auto.pilot import compete as compete
from credo.tables.auto.pilot import compete_each as compete_each
