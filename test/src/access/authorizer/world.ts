import type { Test } from 'tap'
import { startServices } from '../../../../services/index.js'
import type { GatewayAccount, Identity } from '../../../../src/api/identity.js'
import type { ProxyOptions } from '../../../../src/server/proxy-options.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { SecondAccount } from '../../../support/gateway/second-account.js'
import { startInProcess } from '../../../support/server/in-process.js'
import { signedRequest, type TextAnswer, unsignedRequest, type Wanted } from '../../../support/sign/signed-request.js'

export const owner = { accessKeyId: 'owner-key', secretAccessKey: 'secret-of-the-owner' }
export const foreigner = { accessKeyId: 'foreigner', secretAccessKey: 'secret-of-the-foreigner' }

export type Who = 'owner' | 'foreigner' | 'anonymous'

/** Two accounts, of which neither sees anything of the other, and clients of both and of none. */
export async function startWorld(
  t: Test,
  more: (account: GatewayAccount) => readonly Identity[] = () => [],
  options: Partial<ProxyOptions> = {},
) {
  const services = await startServices({ data: temporaryFolder(t), gateway: { host: '127.0.0.1', port: 0 } })
  t.teardown(() => services.stop())
  const account = await services.gateway.credentials()
  const hop = await SecondAccount.start(t, { url: services.gateway.url, ...account }, { looks: false })
  const server = await startInProcess(t, 'full', {
    gateway: { url: hop.url, account },
    identities: [owner, { ...foreigner, account: hop.account }, ...more(hop.account)],
    ...options,
  })
  const { endpoint } = server
  const as: Readonly<Record<Who, (wanted: Wanted) => Promise<TextAnswer>>> = {
    owner: (wanted) => signedRequest(endpoint, owner, wanted),
    foreigner: (wanted) => signedRequest(endpoint, foreigner, wanted),
    anonymous: (wanted) => unsignedRequest(endpoint, wanted),
  }
  /** Status and error code: `403 AccessDenied`, `200 `. */
  const status = async (who: Who, method: string, path: string, wanted: Partial<Wanted> = {}): Promise<string> => {
    const { status, code } = await as[who]({ method, path, ...wanted })
    return `${status} ${code}`
  }
  return { endpoint, as, status, hop, server }
}
