import { serveIpfs } from '../ipfs/serve.js'
import { type PaymentRoute, route } from '../route.js'

/** To anyone, as the gateways of IPFS do. */
export const contents: readonly PaymentRoute[] = (['GET', 'HEAD', 'OPTIONS'] as const).map((method) =>
  route({
    method,
    path: '/ipfs/*',
    access: 'public',
    summary: 'sends a content by its CID, or what a path below it names',
    produces: '*/*',
    handle: serveIpfs,
  }),
)
