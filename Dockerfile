# docker build -t vdcsync .
# docker run --rm --read-only --cap-drop ALL -v vdcsync:/var/lib/vdcsync -v "$PWD:/spec:ro" \
#   -e VDC_BASE_URL -e VDC_TOKEN_FILE=/run/secrets/token -v ./token:/run/secrets/token:ro vdcsync plan

# By digest, for amd64, arm64 and ppc64le. CONTRIBUTING.md says how to update it.
ARG NODE_IMAGE=node:24.21.0-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6

FROM $NODE_IMAGE AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
# No package's script runs: none of them is needed to build.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json rolldown.config.ts ./
COPY src ./src
RUN npm run build

FROM $NODE_IMAGE
# git and ssh fetch specs from a branch. tini is process 1: it passes signals on and reaps orphans, also where nobody gives --init (Kubernetes).
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git openssh-client tini && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
WORKDIR /app
COPY --from=build /build/package.json ./
# It holds all that it imports.
COPY --from=build /build/dist/cli ./dist/cli
COPY schemas ./schemas
RUN chmod 755 dist/cli/main.cjs && ln -s /app/dist/cli/main.cjs /usr/local/bin/vdcsync
RUN install -d -o node -g node -m 0700 /var/lib/vdcsync
ENV NODE_ENV=production
ENV VDCSYNC_STATE=/var/lib/vdcsync/state.db
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000
# The one place that is written to: the root file system may be read-only.
VOLUME /var/lib/vdcsync
# A spec that is mounted here is found without -f.
WORKDIR /spec
# The state can be read. A one-shot container is gone before it is asked.
HEALTHCHECK --interval=60s --timeout=10s CMD ["vdcsync", "history", "--limit", "1"]
# The memory of the process holds secrets: a crash writes no core file, and without the flag SIGUSR1 opens Node's debugger.
ENTRYPOINT ["tini", "--", "sh", "-c", "ulimit -c 0; exec node --disable-sigusr1 /app/dist/cli/main.cjs \"$@\"", "vdcsync"]
CMD ["run"]
