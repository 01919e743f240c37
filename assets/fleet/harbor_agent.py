"""holorun as an agent of Harbor, with trajectories in Harbor's format (ATIF).

    harbor run -p TASK --agent-import-path harbor_agent:HolorunAgent --model qwen/qwen3-vl \\
        --ak program=build/holorun \\
        --ak 'options=--base-url http://10.0.0.5:8000/v1 --key env:KEY --max-steps 60'

The program is copied into the task's environment and runs there: on its DISPLAY, or on a private desktop
(needs Xvfb), where `start` is run first. The environment's image must have the libraries that holorun is
linked with. Needs the package harbor, and assets/fleet on PYTHONPATH.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

Json = dict[str, Any]
PROGRAM = "/usr/local/bin/holorun"


class HolorunAgent(BaseAgent):
    capabilities = AgentCapabilities(atif=True)

    def __init__(
        self,
        logs_dir: Path,
        model_name: str | None = None,
        *args: Any,
        program: str = "holorun",
        options: str = "",
        start: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(logs_dir, model_name, *args, **kwargs)
        self.program, self.words, self.first = Path(program), shlex.split(options), start
        self.found = None

    @staticmethod
    def name() -> str:
        return "holorun"

    def version(self) -> str | None:
        return self.found

    async def setup(self, environment: BaseEnvironment) -> None:
        await environment.upload_file(self.program, PROGRAM)
        told = await environment.exec(f"chmod 755 {PROGRAM} && {PROGRAM} --version", user="root")
        if told.return_code:
            raise RuntimeError(
                f"holorun does not run in this environment: {(told.stderr or told.stdout or '').strip()}"
            )
        self.found = told.stdout.split()[1] if len((told.stdout or "").split()) > 1 else None

    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        logs = str(self.environment_logs_dir)
        words = [PROGRAM, "run", "--json", "--runs", f"{logs}/runs", *self.words]
        if self.model_name and "--model" not in self.words and "-m" not in self.words:
            words += ["--model", self.model_name]
        desk = ["--on", "desk", *(["--start", self.first] if self.first else [])]
        script = (
            f'mkdir -p {logs} && if [ -n "$DISPLAY" ]; then set --; else set -- {shlex.join(desk)}; fi; '
            f'{shlex.join(words)} "$@" -- {shlex.quote(instruction)} 2>{logs}/holorun.err'
        )
        try:
            done = await environment.exec(script, env=self.extra_env)
            context.metadata = {"exit_code": done.return_code, **self.outcome(done.stdout)}
        finally:  # also after an interrupted run
            await self.export(environment, context, logs)

    @staticmethod
    def outcome(text: str | None) -> Json:
        try:
            told = json.loads(text or "")
        except (TypeError, ValueError):
            return {}
        return {k: told[k] for k in ("status", "answer", "steps") if k in told}

    async def export(self, environment: BaseEnvironment, context: AgentContext, logs: str) -> None:
        """Writes trajectory.json to the folder of logs; returns its token counts."""
        made = await environment.exec(
            f"{PROGRAM} export --runs {logs}/runs --format atif -o {logs} && cat {logs}/trajectory.json"
        )
        if made.return_code:
            return
        total = json.loads(made.stdout.partition("\n")[2])["final_metrics"]
        context.n_input_tokens = total["total_prompt_tokens"]
        context.n_output_tokens = total["total_completion_tokens"]
        context.n_cache_tokens = total["total_cached_tokens"]
