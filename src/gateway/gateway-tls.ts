/** How connections to a gateway with an https: address are secured; texts in PEM. */
export interface GatewayTls {
  /** Certificates of the authorities that the gateway is trusted by. Default: those that Node knows. */
  readonly ca?: string
  /** Client certificate, with `key`. */
  readonly cert?: string
  readonly key?: string
}
