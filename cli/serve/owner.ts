import type { KeptWallet, OwnerWallet } from '../../plugins/pay/owner-wallet.js'
import type { OwnerUser } from '../../plugins/task/owner-user.js'
import type { Identity } from '../../src/api/identity.js'
import { withRegistry } from '../command.js'
import type { Config } from '../config/config.js'
import { servicesFolder } from './gateway.js'

// Their code is loaded with the first request of an owner that needs them.
const billing = () => import('../../services/payment/billing.js')
const payment = () => import('../../services/payment/store.js')
const platform = () => import('../../services/platform/user-registry.js')

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
  const wallets = async () => (await payment()).openWalletRegistry(folder, database)
  let kept: Promise<KeptWallet> | undefined
  const is = (identity: Identity) => isOwner(identity, accessKeyId())
  return {
    user:
      gatewayUrl === undefined && platformUrl === undefined
        ? {
            is,
            async token() {
              const { hasUsers, openUserRegistry } = await platform()
              if (database === undefined && !hasUsers(folder)) return undefined
              return withRegistry(await openUserRegistry(folder, database), (users) => users.tokenOfFirstUser())
            },
          }
        : undefined,
    wallet:
      gatewayUrl === undefined && paymentUrl === undefined && paymentChainUrl === undefined
        ? {
            is,
            async wallet() {
              if (database === undefined && !(await payment()).hasWallets(folder)) return undefined
              kept ??= keptWallet(wallets, paymentNetwork).catch((error: unknown) => {
                kept = undefined
                throw error
              })
              return kept
            },
            async fund(amount, reference) {
              const registry = await wallets()
              try {
                await registry.fund((await registry.ofOwner()).address, amount, `owner ${reference}`)
              } finally {
                await registry.close()
              }
            },
          }
        : undefined,
  }
}

/** @param network as orders to pay name it */
async function keptWallet(
  wallets: () => ReturnType<Awaited<ReturnType<typeof payment>>['openWalletRegistry']>,
  network: string,
): Promise<KeptWallet> {
  const { paymentOrderText } = await billing()
  const { address, sign } = await withRegistry(await wallets(), (registry) => registry.ofOwner())
  return { address, sign, order: (wCid, amount) => sign(paymentOrderText(wCid, amount, network)) }
}

/**
 * True for the key pair of the owner and its sessions, whose policies count beside this. No other key pair acts as the
 * owner, whatever it may do, and no web identity that has its rights.
 */
function isOwner({ accessKeyId, account, rights, policies, session }: Identity, owner: string): boolean {
  const isWhole = account === undefined && rights === undefined && policies === undefined
  return accessKeyId === owner && isWhole && session?.role === undefined
}
