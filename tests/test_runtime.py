"""`import credo` gives the CPU its devices before JAX is used, in either order, unless the user has decided."""

import os
import subprocess
import sys

import pytest

# A machine of three cores, whatever it has.
START = """
import os, sys, warnings
os.sched_getaffinity = lambda process: {0, 1, 2}
before = dict(os.environ)
"""
USE = "import jax.numpy as jnp\nx = jnp.ones(3) + 1\n"
FLAGS = "os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=2'\n"
CONFIG = "jax.config.update('jax_num_cpu_devices', 2)\n"
CACHE = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
DROPPED = ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS", *CACHE)


def run(code, **env):
    env = {k: v for k, v in os.environ.items() if k not in DROPPED} | env
    return subprocess.run([sys.executable, "-c", START + code], env=env, capture_output=True, text=True, timeout=300)


def said(code, **env):
    found = run(code, **env)
    assert found.returncode == 0, found.stderr
    return found.stdout.split(), found.stderr


@pytest.mark.parametrize("order", ["import jax, credo\n", "import credo, jax\n"], ids=["jax first", "credo first"])
def test_a_fit_has_all_devices_though_jax_was_used_before_it(order):
    fit = (
        "model = credo.Model(credo.networks.mlp([]), credo.priors.normal(), credo.likelihoods.gaussian(0.1))\n"
        "data = jnp.linspace(-1, 1, 20)[:, None], jnp.linspace(-1, 1, 20)\n"
        "fit = credo.fit(jax.random.key(0), model, data, 'deep_ensemble', steps=3)\n"
        "print(jax.device_count(), dict(os.environ) == before)\n"
    )
    out, err = said("warnings.simplefilter('error', UserWarning)\n" + order + USE + fit)
    assert out == ["3", "True"]
    assert "before credo" not in err


def test_a_warning_says_that_it_is_too_late_once_and_where():
    out, err = said("import jax\n" + USE + "import credo\ncredo.Model\ncredo.fit\nprint(jax.device_count())")
    assert out == ["1"]
    assert err.count("JAX was used before credo was imported") == 1
    assert "<string>" in err


def test_a_process_that_uses_nothing_of_credo_is_not_warned():
    _, err = said("import jax\n" + USE + "import credo\nprint(credo.__version__)")
    assert "Warning" not in err


@pytest.mark.parametrize(
    ("code", "env"),
    [
        ("import credo, jax\n", {"JAX_NUM_CPU_DEVICES": "2"}),
        ("import jax, credo\n", {"JAX_NUM_CPU_DEVICES": "2"}),
        ("import credo, jax\n", {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}),
        ("import credo\n" + FLAGS + "import jax\n", {}),
        ("import jax, credo\n" + FLAGS + "credo.Model\n", {}),
        ("import credo, jax\n" + CONFIG, {}),
        ("import jax\n" + CONFIG + "import credo\n", {}),
    ],
    ids=["variable", "variable, JAX first", "flags", "flags between", "flags after", "config", "config between"],
)
def test_what_the_user_has_set_stays(code, env):
    out, err = said(code + USE + "print(jax.device_count())", **env)
    assert out == ["2"]
    assert "Warning" not in err


def test_looking_for_jax_is_not_importing_it_and_nothing_is_left_behind():
    code = (
        "import importlib.util, credo\n"
        "found = importlib.util.find_spec('jax'), importlib.util.find_spec('jax')\n"
        "hooks = len(sys.meta_path)\n"
        "import jax\n"
        "print(jax.device_count(), hooks - len(sys.meta_path), 'exec_module' in vars(jax.__spec__.loader))\n"
    )
    assert said(code)[0] == ["3", "1", "False"]


def test_the_compilation_cache_is_the_users_where_there_is_one(tmp_path):
    show = (
        "print(jax.config.jax_compilation_cache_dir, jax.config.jax_persistent_cache_min_compile_time_secs)\n"
        "print(dict(os.environ) == before)"
    )
    ours = str(tmp_path / "ours" / "programs")
    assert said("import credo, jax\n" + show, CREDO_CACHE=str(tmp_path / "ours"))[0] == [ours, "0.1", "True"]
    theirs = {"JAX_COMPILATION_CACHE_DIR": "/theirs", "CREDO_CACHE": str(tmp_path / "ours")}
    assert said("import credo, jax\n" + show, **theirs)[0] == ["/theirs", "1.0", "True"]
