import { choice, host, httpUrl, integer, path, port, text, url } from '../kinds.js'
import { option } from '../option.js'

const address = text('address', '0x and 40 hexadecimal digits', /^0x[0-9A-Fa-f]{40}$/)
const networkName = text('name', 'letters, digits, . and -', /^[A-Za-z0-9.-]{1,64}$/)
const words = text('words', 'three words, separated by commas', /^[a-z][a-z0-9]{0,30}(,[a-z][a-z0-9]{0,30}){2}$/)
const MOST_BLOCKS = 10 ** 12

/** Options of the storage payment API. */
export const paymentOptions = Object.freeze({
  paymentUrl: option('Payment', httpUrl(), {
    help: 'Storage payment API to use. Without it, the embedded one is started beside the embedded gateway.',
  }),
  paymentHost: option('Payment', host, { default: '127.0.0.1', help: 'Address of the embedded storage payment API.' }),
  paymentPort: option('Payment', port, {
    default: 9300,
    help: 'Port of the embedded storage payment API; 0 selects a free port.',
  }),
  paymentPublicUrl: option('Payment', httpUrl(), {
    help: 'Address by which clients and storage providers on other machines reach the embedded storage payment API: for `/ipfs/<cid>` of uploads, and for the CARs of their deals. Without it, their URLs contain the address that it listens on.',
  }),
  paymentIpfsUrl: option('Payment', httpUrl(), {
    help: 'Address of a gateway of IPFS that has the uploads, for their `ipfs_url`. Without it, that of the Kubo node of `--kubo-api`, else the embedded storage payment API.',
  }),
  paymentDenylist: option('Payment', path, {
    help: 'File with a line `/ipfs/<cid>` for each content that the embedded storage payment API neither sends nor takes; it is read again when it changes.',
  }),
  paymentVariant: option('Payment', choice('a', 'b'), {
    default: 'a',
    help: 'Variant of the embedded storage payment API: in `a` wallets sign in and see what is their own; in `b` there is no sign-in, and callers name any wallet.',
  }),
  paymentNetwork: option('Payment', networkName, {
    default: 'dealgate.testnet',
    help: 'Name of the network of the embedded storage payment API, such as that of a chain: sign-ins must name it, and orders to pay contain it. Of several services, give each its own.',
  }),
  paymentFreeGib: option('Payment', integer(0, 1_000_000), {
    default: 0,
    unit: 'GiB',
    help: 'Room that each wallet may upload to for nothing in a calendar month (UTC), in variant `a`; public deployments have 10.',
  }),
  paymentWords: option('Payment', words, {
    help: 'Words of public deployments for the storage coin, the stable coin and the wallet, such as `filecoin,usdc,metamask`: parameters and paths of the embedded storage payment API with such a word are there by these, too, so that clients of these deployments work unmodified.',
  }),
  paymentMintContract: option('Payment', address, {
    help: 'Address of the contract by which clients mint NFTs of their uploads. The embedded storage payment API only names it in its parameters.',
  }),
  paymentChainUrl: option('Payment', url('http', 'https'), {
    secret: true,
    help: 'JSON-RPC endpoint of a node of an EVM chain, which may contain a key. Payments are then made on this chain instead of the embedded ledger; needs the package viem.',
  }),
  paymentChainId: option('Payment', integer(1, 10 ** 14), {
    help: 'Number of that chain; the server does not start with a node of another one.',
  }),
  paymentChainContract: option('Payment', address, { help: 'Address of the contract that locks payments.' }),
  paymentChainToken: option('Payment', address, {
    help: 'Address of the stable coin, an ERC-20 token with at most 36 decimals.',
  }),
  paymentChainRecipient: option('Payment', address, {
    help: 'Address that gets what is unlocked; payments for another one do not count.',
  }),
  paymentChainAbi: option('Payment', path, {
    help: 'JSON file with the ABI of the contract, if its events are not the usual ones.',
  }),
  paymentChainConfirmations: option('Payment', integer(0, 10_000), {
    default: 12,
    unit: 'blocks',
    help: 'A payment counts when its block has so many blocks above it.',
  }),
  paymentChainStartBlock: option('Payment', integer(0, MOST_BLOCKS), {
    help: 'First block whose payments count. Without it, the one above the latest confirmed block at the first start.',
  }),
})
