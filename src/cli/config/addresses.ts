import { addressing } from '../../request/addressing/addressing.js'
import { checkedText } from './kinds.js'

export const domain = checkedText('host', 'a host name without port, and no IP address', (value) =>
  addressing({ domains: [value] }),
)

export const proxyAddress = checkedText('address', 'an IP address, or a block such as 10.0.0.0/8', (value) =>
  addressing({ trustedProxies: [value] }),
)
