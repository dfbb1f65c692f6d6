/** Where a gateway is, and an account there. */
export interface GatewayAddress {
  readonly url: string
  readonly accessKey: string
  readonly secretKey: string
}
