from .hub import Pushed as Pushed
from .hub import PushSpec as PushSpec
from .hub import pull_bank as pull_bank
from .hub import push as push
from .tiny import Tiny as Tiny
from .tiny import TinySpec as TinySpec
from .tiny import publish_tiny as publish_tiny
from .without_responses import without_responses as without_responses
