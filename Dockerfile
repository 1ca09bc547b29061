# The program with its libraries, in two stages: what only building needs is not in the image.
#
# PyTorch comes as its index has it, which on Linux includes CUDA. The image becomes some gigabytes smaller if
# PIP_EXTRA_INDEX_URL names an index with builds for CPUs: docker build --build-arg PIP_EXTRA_INDEX_URL=...

FROM python:3.11-slim AS build

ARG PIP_EXTRA_INDEX_URL
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PATH=/opt/venn-admit/bin:$PATH
RUN python -m venv /opt/venn-admit

# In two steps, so that a change of the code does not install everything again.
WORKDIR /usr/src/venn-admit
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
        print(*p['dependencies'], *(one for extra in ('oidc', 'redis', 'telemetry') for one in p['optional-dependencies'][extra]), \
              sep='\n')" > requirements.txt \
    && pip install --constraint constraints.txt --requirement requirements.txt
COPY service service
COPY workers workers
COPY client client
COPY migrations migrations
COPY examples examples
RUN pip install --no-deps --constraint constraints.txt .


FROM python:3.11-slim

# The number is that of deploy/ and docker-compose.yml too.
RUN useradd --uid 10001 --create-home --home-dir /var/lib/venn-admit venn-admit
COPY --from=build /opt/venn-admit /opt/venn-admit

# The file system may be read-only, except for the home and /tmp.
ENV PATH=/opt/venn-admit/bin:$PATH PYTHONDONTWRITEBYTECODE=1 VENN_ADMIT_HOME=/var/lib/venn-admit
USER 10001:10001
WORKDIR /var/lib/venn-admit
EXPOSE 8470
CMD ["venn-admit", "--help"]
