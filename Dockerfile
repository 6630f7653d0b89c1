# A translation server on a CPU. Runs are mounted; docs/serving.md#container says how.
#
#     docker build -t nmtflex .
#     docker run --rm -p 5000:5000 -v "$PWD/runs/deen:/runs/deen:ro" nmtflex /runs/deen

FROM python:3.11-slim AS install
ENV PIP_NO_CACHE_DIR=1 PIP_NO_COMPILE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# Its own environment, so that nothing of pip is copied along.
RUN python -m venv /opt/nmtflex
COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY data /source/data
COPY nmtflex /source/nmtflex
# The extra index has PyTorch's build for CPUs, without several GB of CUDA.
RUN /opt/nmtflex/bin/pip install --extra-index-url https://download.pytorch.org/whl/cpu \
        --constraint /source/constraints.txt '/source[serve]'
# What neither serve nor translate loads: training's and scoring's packages, PyTorch's compiler,
# tests and headers, and pip itself.
RUN cd /opt/nmtflex/lib/python3.11/site-packages \
    && /opt/nmtflex/bin/pip uninstall --yes --quiet absl-py colorama fsspec grpcio jinja2 \
        markdown markupsafe mock mpmath networkx pillow portalocker sacrebleu setuptools sympy \
        tabulate tensorboard tensorboard-data-server werkzeug \
    && find torch/bin -type f ! -name torch_shm_manager -delete \
    && rm -rf torch/include torch/share torch/test pip pip-*.dist-info \
    && find . -type d -name tests -prune -exec rm -rf {} + \
    && find . -name '*.pyi' -delete

FROM python:3.11-slim
RUN useradd --system --uid 1000 --create-home nmtflex \
    && mkdir /runs /cache && chown nmtflex /cache
COPY --from=install /opt/nmtflex /opt/nmtflex
USER nmtflex
# Loops are compiled when the first worker starts. A volume at /cache keeps them: a later container
# on the same kind of processor then starts in seconds.
ENV PATH=/opt/nmtflex/bin:$PATH NUMBA_CACHE_DIR=/cache PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
VOLUME /cache
EXPOSE 5000
HEALTHCHECK --interval=30s --timeout=10s --start-period=180s CMD ["python", "-c", \
    "import urllib.request as u; u.urlopen('http://127.0.0.1:5000/health', timeout=5)"]
# SIGTERM drains: give it the time, with docker stop --time 40.
ENTRYPOINT ["nmtflex", "serve", "--host", "0.0.0.0", "--port", "5000"]
