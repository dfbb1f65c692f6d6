import { join } from 'node:path'
import { S3, type S3ClientConfig } from '@aws-sdk/client-s3'
import type { Test } from 'tap'
import { serve } from '../../../../cli/process/listen.js'
import type { legacy } from '../../../../services/gateway/legacy/quirks.js'
import { startServices } from '../../../../services/index.js'
import { openUserRegistry } from '../../../../services/platform/user-registry.js'
import { createProxy } from '../../../../src/server/create-proxy.js'
import type { ProxyOptions } from '../../../../src/server/proxy-options.js'
import { send } from '../../../services/platform/platform-client.js'
import { temporaryFolder } from '../../../support/content/folders.js'
import { keptLog } from '../../../support/server/kept-log.js'

export const ROLE = 'arn:aws:iam::000000000000:role/platform-user'

/** Of the users that a test adds. */
export const PASSWORD = 'a password of theirs'
const OWNER = { accessKeyId: 'test-key', secretAccessKey: 'test-secret' }

export interface Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
}

/** The embedded services with a task platform, and a proxy to them in this process. */
export async function startSts(t: Test, options: Partial<ProxyOptions> = {}, quirks: typeof legacy = []) {
  const folder = temporaryFolder(t)
  const data = join(folder, 'services')
  const local = { host: '127.0.0.1', port: 0 }
  const services = await startServices({ data, gateway: { ...local, quirks }, platform: local })
  t.teardown(() => services.stop())
  const first = await services.platform?.makeFirstUser()
  const platform = services.platform?.url ?? ''
  const { log, lines } = keptLog()
  let ahead = 0
  const open = async () =>
    createProxy({
      gateway: { url: services.gateway.url, account: await services.gateway.credentials() },
      identities: [OWNER],
      platformUrl: platform,
      data: join(folder, 'proxy'),
      log,
      accessLog: true,
      now: () => Date.now() + ahead,
      ...options,
    })
  let proxy = await open()
  t.teardown(() => proxy.close())
  const serving = await serve({ handler: (req, res) => proxy(req, res), host: '127.0.0.1', port: 0 })
  t.teardown(() => serving.close(0))
  const signIn = async (body: object): Promise<string> =>
    (await send(platform, 'POST', '/auth/login', { body })).json.auth_token
  const sts = (parameters: Readonly<Record<string, string>>) => callSts(serving.url, parameters)
  return {
    endpoint: serving.url,
    folder,
    lines,
    /** Adds a user of the platform and signs in; gives the JWT. */
    async newUser(email: string): Promise<string> {
      const user = { email, password: PASSWORD }
      const registry = await openUserRegistry(data)
      await registry.add(user.email, user.password)
      await registry.close()
      return signIn(user)
    },
    /** The JWT of the first user. */
    owner: () => signIn({ ...first }),
    /** Sets the clock of sessions ahead. */
    advance(ms: number) {
      ahead += ms
    },
    /** Calls the token service without a signature. */
    sts,
    /** Temporary credentials; throws unless they are issued. */
    async assume(token: string, more: Readonly<Record<string, string>> = {}): Promise<Credentials> {
      const answer = await sts(assumeParameters(token, more))
      if (answer.status !== 200) throw new Error(answer.text)
      return {
        accessKeyId: answer.member('AccessKeyId'),
        secretAccessKey: answer.member('SecretAccessKey'),
        sessionToken: answer.member('SessionToken'),
      }
    },
    s3(credentials: S3ClientConfig['credentials']): S3 {
      const client = new S3({
        endpoint: serving.url,
        region: 'us-east-1',
        forcePathStyle: true,
        maxAttempts: 1,
        ...(credentials && { credentials }),
      })
      t.teardown(() => client.destroy())
      return client
    },
    /** Stops the proxy alone and starts it again on the same data. */
    async restart() {
      await proxy.close()
      proxy = await open()
    },
  }
}

/** The parameters of AssumeRoleWithWebIdentity. */
export function assumeParameters(token: string, more: Readonly<Record<string, string>> = {}): Record<string, string> {
  return {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: ROLE,
    RoleSessionName: 'tester',
    WebIdentityToken: token,
    ...more,
  }
}

async function callSts(endpoint: string, parameters: Readonly<Record<string, string>>) {
  const response = await fetch(endpoint, { method: 'POST', body: new URLSearchParams(parameters) })
  const text = await response.text()
  const member = (name: string) => new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1] ?? ''
  return { status: response.status, text, code: member('Code') || undefined, member }
}
