import { signedIdentity, timesOfToken } from 'dealgate/paid'
import { defineCall, S3Error } from 'dealgate/plugin'
import { z } from 'zod'
import type { PayDeps } from '../deps.js'
import { address, apiPath, NONCE, nonceFor, service } from '../service.js'
import { SOURCE, sendOpenly } from './send.js'

const aliases = { wallet_address: 'PublicKeyAddress' } as const

export function createWalletNonce(deps: PayDeps) {
  return defineCall({
    name: 'CreateWalletNonce',
    source: SOURCE,
    summary: 'Gets a nonce for the sign-in of a wallet, to be signed elsewhere by personal_sign.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/wallet/nonce' },
    body: z.strictObject({ PublicKeyAddress: address }),
    aliases,
    result: z.object({ Nonce: z.string().describe('Digits.') }),
    async answer({ request, body }) {
      await requireSignIn(deps)
      return { Nonce: await service.forClient(() => nonceFor(deps.client, body.PublicKeyAddress, request.signal)) }
    },
  })
}

export function createWalletSession(deps: PayDeps) {
  return defineCall({
    name: 'CreateWalletSession',
    source: SOURCE,
    summary: 'Signs a wallet in by its signature of a nonce.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/wallet/session' },
    body: z.strictObject({
      Nonce: z.string().regex(NONCE, 'must be digits'),
      Signature: z.string().regex(/^0x[0-9a-fA-F]{130}$/, 'must be 0x and 130 hexadecimal digits'),
      PublicKeyAddress: address,
      Network: z
        .string()
        .min(1)
        .max(100)
        .describe('Name of the chain environment, see ChainName in the system config.'),
      Store: z
        .boolean()
        .optional()
        .describe('Link the wallet to this access key, with the token encrypted, and leave it out of the answer.'),
    }),
    aliases,
    result: z.object({
      JwtToken: z.string().optional().describe('Absent with Store.'),
      ExpiresAt: z.string().optional(),
      Stored: z.boolean(),
    }),
    async answer({ request, body }, context) {
      await requireSignIn(deps)
      const identity = signedIdentity(context)
      const answer = await deps.attempts.run(identity.accessKeyId, () =>
        sendOpenly(deps, request, {
          method: 'POST',
          path: apiPath('user', 'login_by_wallet_signature'),
          body: {
            kind: 'json',
            value: {
              nonce: body.Nonce,
              signature: body.Signature,
              public_key_address: body.PublicKeyAddress,
              network: body.Network,
            },
          },
        }),
      )
      const { jwt_token: token } = service.dataOf(answer, z.object({ jwt_token: z.string().min(1) }))
      const { expires: until } = timesOfToken(token)
      const shown = until === undefined ? {} : { ExpiresAt: new Date(until).toISOString() }
      if (body.Store !== true) return { JwtToken: token, ...shown, Stored: false }
      await deps.wallets.set(identity, {
        address: body.PublicKeyAddress.toLowerCase(),
        network: body.Network,
        token,
        ...(until !== undefined && { until }),
      })
      return { ...shown, Stored: true }
    },
  })
}

/** For an owner who wants the wallet of the server back. */
export function unlinkWallet(deps: PayDeps) {
  return defineCall({
    name: 'UnlinkWallet',
    source: SOURCE,
    summary: 'Unlinks the wallet from the access key. The owner of a server then acts as the one that it keeps.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/wallet/unlink' },
    result: z.object({ Unlinked: z.boolean().describe('False if the access key had no wallet linked to it.') }),
    async answer(_, context) {
      let linked = false
      await deps.wallets.change(signedIdentity(context), () => {
        linked = true
        return undefined
      })
      return { Unlinked: linked }
    },
  })
}

async function requireSignIn(deps: PayDeps): Promise<void> {
  if ((await deps.mode()) === 'signedIn') return
  throw new S3Error('FeatureNotInVariant', {
    message: 'Variant B of the storage payment API has no sign-in: calls name their wallet.',
  })
}
