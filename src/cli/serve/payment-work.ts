import { GiB } from '../../services/gateway/limits.js'
import type { PaymentOptions } from '../../services/payment/payment.js'
import { readWords } from '../../services/payment/words.js'
import type { Config } from '../config/config.js'

/** How the embedded storage payment API works, by the options. The rules of the options hold. */
export function paymentWork(
  config: Config,
): Pick<
  PaymentOptions,
  'publicUrl' | 'ipfsGateway' | 'denylist' | 'variant' | 'networkName' | 'words' | 'mintContract' | 'chain' | 'limits'
> {
  const { paymentChainUrl: url, paymentChainId: chainId } = config
  const { paymentChainContract: contract, paymentChainToken: token, paymentChainRecipient: recipient } = config
  const {
    paymentVariant: variant,
    paymentPublicUrl: publicUrl,
    paymentIpfsUrl: ipfsGateway,
    paymentDenylist: denylist,
  } = config
  const common = {
    variant,
    networkName: config.paymentNetwork,
    ...(config.paymentWords !== undefined && { words: readWords(config.paymentWords) }),
    mintContract: config.paymentMintContract,
    limits: { freeBytesPerMonth: config.paymentFreeGib * GiB, maxConnections: config.servicesMaxConnections },
    ...(publicUrl !== undefined && { publicUrl }),
    ...(ipfsGateway !== undefined && { ipfsGateway }),
    ...(denylist !== undefined && { denylist }),
  }
  if (!(url && chainId && contract && token && recipient)) return common
  const { paymentChainConfirmations: confirmations, paymentChainStartBlock: startBlock } = config
  const chain = { url, chainId, contract, token, recipient, confirmations, startBlock, abiFile: config.paymentChainAbi }
  return { ...common, chain }
}
