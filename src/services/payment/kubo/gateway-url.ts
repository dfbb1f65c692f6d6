/** Addresses that mean the machine of the node itself. */
const OWN = /^(0\.0\.0\.0|127(\.\d+){3}|::1?|localhost)$/

/**
 * The address of a node's gateway, which listens on a multiaddress; undefined when clients cannot know it. One that
 * only the machine of the node understands stands for the host by which its RPC is reached.
 * @param address such as `/ip4/127.0.0.1/tcp/8080`
 * @param rpc URL of the RPC of the node
 */
export function gatewayUrl(address: string, rpc: string): string | undefined {
  const [, kind, host = '', port = ''] =
    /^\/(ip4|ip6|dns|dns4|dns6)\/([^/]+)\/tcp\/(\d+)(?:\/http)?$/.exec(address) ?? []
  if (kind === undefined || port === '0') return undefined
  const reached = OWN.test(host) ? new URL(rpc).hostname : kind === 'ip6' ? `[${host}]` : host
  return `http://${reached}:${port}`
}
