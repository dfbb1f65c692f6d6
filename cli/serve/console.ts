import type { CleanupStack } from '../../common/cleanup-stack.js'
import type { Logger } from '../../common/log.js'
import type { ConsoleAddress } from '../../src/server/console-address.js'
import { listenFailure } from '../command.js'
import { type Config, isGiven } from '../config/config.js'
import { type ConsoleTarget, serveConsole } from '../process/console-server.js'
import { issuerOf } from './oidc.js'
import { type Prepare, ready } from './reload.js'
import { certificatesOf, useCertificates } from './server-options.js'

interface OpenConsole {
  /** Undefined without a console. */
  readonly address: ConsoleAddress | undefined
  /** Serves the pages from now on, for the S3 endpoint at this address. */
  begin(endpoint: string): void
  readonly prepare: Prepare
}

/**
 * Listens for the console before the S3 endpoint starts, which has to know its port. Throws Failure.
 * @param cleanup gets what stops it
 */
export async function openConsole(config: Config, log: Logger, cleanup: CleanupStack): Promise<OpenConsole> {
  const { host, consolePort: port, consoleUrl: url, consoleEndpoint, region } = config
  if (port === 'off') return none
  const tls = certificatesOf(config, log)
  cleanup.defer(() => tls?.close())
  let target: ConsoleTarget | undefined
  // The pages only need to know where it is: tokens are verified by the endpoint.
  const issuer = await issuerOf(config, () => '', log)
  const serving = await serveConsole({ host, port, tls, target: () => target, log }).catch((error) => {
    // Other stores have their consoles at this port, too. The default must not keep a server from starting.
    if (!isGiven(config, 'consolePort') && error.code === 'EADDRINUSE') return undefined
    throw listenFailure(error, { host, port }, { host: '--host', port: '--console-port' })
  })
  if (serving === undefined) {
    log.warn({ port }, 'the port of the console is in use, so that there is no console: --console-port selects another')
    return none
  }
  // Its pages hold no request open.
  cleanup.defer(async () => void (await serving.close(0)))
  return {
    address: { at: serving.url, url },
    begin(endpoint) {
      const oidc = issuer &&
        config.oidcClientId !== undefined && {
          ...{ issuer, clientId: config.oidcClientId, scope: config.oidcScope },
          // Never by the name in a request: the issuer sends its code there.
          redirectUri: new URL('/', url ?? serving.url).href,
        }
      target = { at: endpoint, url: consoleEndpoint, region, ...(oidc && { oidc }) }
    },
    prepare: async (next) => ready(useCertificates(tls, next)),
  }
}

const none: OpenConsole = Object.freeze({ address: undefined, begin() {}, prepare: async () => ready(() => {}) })

/** Its address in a start message. */
export function shownConsole(address: ConsoleAddress | undefined): string | undefined {
  return address && (address.url ?? address.at)
}
