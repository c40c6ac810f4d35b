# The image of spendcap: one binary on a small Debian.
#
#   docker build -t spendcap .
#
# It runs as a user with a number, on a read-only root file system; what it writes is the ledger, in the
# volume /var/lib/spendcap.

# Both bases can be replaced, by a mirror or by pinned digests. The runtime needs glibc and libgcc, nothing
# else: the public certificates are in the binary.
ARG BUILDER=rust:1.95-bookworm
ARG RUNTIME=debian:bookworm-slim

FROM ${BUILDER} AS build
ARG PROFILE=release
WORKDIR /src
COPY . .
# The mounts keep downloads and compiled crates from one build to the next. Line tables are three quarters of
# the binary (88 MB with them, 21 without) and go; symbols stay, so that a backtrace names its functions.
RUN --mount=type=cache,id=spendcap-registry,target=/usr/local/cargo/registry \
    --mount=type=cache,id=spendcap-target,target=/src/target \
    cargo install --locked --path . --bin spendcap --profile "${PROFILE}" --no-track --root /out \
    && strip --strip-debug /out/bin/spendcap \
    && mkdir /out/ledger

FROM ${RUNTIME}
LABEL org.opencontainers.image.title="spendcap" \
      org.opencontainers.image.description="A proxy in front of Stripe that makes over-charging impossible." \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /out/bin/spendcap /usr/local/bin/spendcap
# A new volume takes its owner from here.
COPY --from=build --chown=65532:65532 /out/ledger /var/lib/spendcap
# A container's loopback is its own: billing services come from outside. The admin listener stays on
# loopback, where `docker exec` and the health check are; SPENDCAP_ADMIN_LISTEN moves it.
ENV SPENDCAP_PROXY_LISTEN=0.0.0.0:12110 \
    TMPDIR=/var/lib/spendcap
WORKDIR /var/lib/spendcap
VOLUME /var/lib/spendcap
USER 65532:65532
EXPOSE 12110
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --retries=3 \
    CMD ["/usr/local/bin/spendcap", "healthcheck"]
# As a list, so that no shell stands between SIGTERM and spendcap.
ENTRYPOINT ["/usr/local/bin/spendcap"]
CMD ["serve"]
