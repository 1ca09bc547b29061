FROM python:3.11-slim

RUN useradd --create-home --home-dir /var/lib/venn-admit venn-admit

# In two steps, so that a change of the code does not install everything anew.
WORKDIR /usr/src/venn-admit
COPY constraints.txt pyproject.toml README.md LICENSE ./
RUN python -c "import tomllib; p = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
        print(*p['dependencies'], *p['optional-dependencies']['redis'], sep='\n')" > requirements.txt \
    && pip install --no-cache-dir --constraint constraints.txt --requirement requirements.txt
COPY venn_admit venn_admit
COPY service service
COPY workers workers
COPY migrations migrations
COPY examples examples
RUN pip install --no-cache-dir --constraint constraints.txt .

USER venn-admit
WORKDIR /var/lib/venn-admit
CMD ["venn-admit", "--help"]
