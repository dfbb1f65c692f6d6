import type { KeptWallet, OwnerWallet } from '../../plugins/pay/owner-wallet.js'
import type { OwnerUser } from '../../plugins/task/owner-user.js'
import { paymentOrderText } from '../../services/payment/billing.js'
import { hasWallets, openWalletRegistry } from '../../services/payment/store.js'
import { hasUsers, openUserRegistry } from '../../services/platform/user-registry.js'
import type { Identity } from '../../src/api/identity.js'
import { withRegistry } from '../command.js'
import type { Config } from '../config/config.js'
import { servicesFolder } from './gateway.js'

export interface Owner {
  /** The first user of the embedded task platform; undefined with another platform. */
  readonly user: OwnerUser | undefined
  /** The wallet that the embedded payment service keeps for the owner; undefined with another service. */
  readonly wallet: OwnerWallet | undefined
}

/**
 * The owner of the server at the embedded services. Their tables are opened beside them, so that every process of the
 * server finds the same user and the same wallet. Services of others know no owner: their users sign in there.
 * @param accessKeyId that of the owner, in force
 */
export function openOwner(config: Config, accessKeyId: () => string): Owner {
  const { gatewayUrl, platformUrl, paymentUrl, paymentChainUrl, paymentNetwork, database } = config
  const folder = servicesFolder(config)
  const users = async () => withRegistry(await openUserRegistry(folder, database), (all) => all.tokenOfFirstUser())
  const wallets = async () => openWalletRegistry(folder, database)
  let kept: Promise<KeptWallet> | undefined
  const is = (identity: Identity) => isOwner(identity, accessKeyId())
  return {
    user:
      gatewayUrl === undefined && platformUrl === undefined
        ? { is, token: async () => (database !== undefined || hasUsers(folder) ? users() : undefined) }
        : undefined,
    wallet:
      gatewayUrl === undefined && paymentUrl === undefined && paymentChainUrl === undefined
        ? {
            is,
            async wallet() {
              if (database === undefined && !hasWallets(folder)) return undefined
              kept ??= wallets()
                .then((registry) => withRegistry(registry, () => registry.ofOwner()))
                .then(({ address, sign }) => ({
                  ...{ address, sign },
                  order: (wCid: string, amount: bigint) => sign(paymentOrderText(wCid, amount, paymentNetwork)),
                }))
                .catch((error: unknown) => {
                  kept = undefined
                  throw error
                })
              return kept
            },
            async fund(amount, reference) {
              const registry = await wallets()
              await withRegistry(registry, async () =>
                registry.fund((await registry.ofOwner()).address, amount, `owner ${reference}`),
              )
            },
          }
        : undefined,
  }
}

/**
 * True for the key pair of the owner and its sessions, whose policies count beside this. No other key pair acts as the
 * owner, whatever it may do, and no web identity that has its rights.
 */
function isOwner({ accessKeyId, account, rights, policies, session }: Identity, owner: string): boolean {
  const isWhole = account === undefined && rights === undefined && policies === undefined
  return accessKeyId === owner && isWhole && session?.role === undefined
}
