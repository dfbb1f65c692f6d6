/** Default of `gatewayTimeoutSeconds`: longest wait for the head of an answer of the gateway, ms. */
export const GATEWAY_TIMEOUT_MS = 30_000
