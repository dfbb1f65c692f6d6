import type { Provider } from '../network.js'

/** A provider, and the number of epochs that each step of a deal takes. */
export interface ProviderTerms extends Omit<Provider, 'status'> {
  /** Time to answer a proposal. */
  readonly acceptEpochs: number
  /** Time to publish an accepted deal. */
  readonly publishEpochs: number
  /** Time to seal a published deal. */
  readonly sealEpochs: number
}

const MIB = 2 ** 20
const GIB = 2 ** 30

/** The smallest possible piece, bytes. */
const MIN_PIECE = 128

/** The providers of a new network. They differ in price, limits and speed, so that clients have a choice. */
export const catalogue: readonly ProviderTerms[] = Object.freeze([
  {
    minerId: 't01000',
    location: 'Global',
    price: '0.0000005',
    verifiedPrice: '0.00000005',
    minPieceSize: MIN_PIECE,
    maxPieceSize: 64 * GIB,
    offlineDealAvailable: true,
    score: 98,
    contactInfo: 'deals@meridian.example',
    acceptEpochs: 2,
    publishEpochs: 10,
    sealEpochs: 240,
  },
  {
    minerId: 't01001',
    location: 'Europe',
    price: '0.000001',
    verifiedPrice: '0',
    minPieceSize: 256,
    maxPieceSize: 32 * GIB,
    offlineDealAvailable: true,
    score: 95,
    contactInfo: 'storage@fjordvault.example',
    acceptEpochs: 2,
    publishEpochs: 20,
    sealEpochs: 180,
  },
  {
    minerId: 't01002',
    location: 'North America',
    price: '0.0000002',
    verifiedPrice: '',
    minPieceSize: MIB,
    maxPieceSize: 32 * GIB,
    offlineDealAvailable: false,
    score: 87,
    contactInfo: 'hello@prairie-archive.example',
    acceptEpochs: 3,
    publishEpochs: 30,
    sealEpochs: 360,
  },
  {
    minerId: 't01003',
    location: 'Asia',
    price: '0.00000005',
    verifiedPrice: '0.000000005',
    minPieceSize: GIB,
    maxPieceSize: 64 * GIB,
    offlineDealAvailable: true,
    score: 91,
    contactInfo: 'sales@lotusbay.example',
    acceptEpochs: 4,
    publishEpochs: 60,
    sealEpochs: 720,
  },
  {
    minerId: 't01004',
    location: 'South America',
    price: '0.000002',
    verifiedPrice: '0.0000002',
    minPieceSize: MIN_PIECE,
    maxPieceSize: 512 * MIB,
    offlineDealAvailable: false,
    score: 78,
    contactInfo: 'contato@pampas-storage.example',
    acceptEpochs: 2,
    publishEpochs: 10,
    sealEpochs: 120,
  },
  {
    minerId: 't01005',
    location: 'Africa',
    price: '0.0000008',
    verifiedPrice: '0.00000008',
    minPieceSize: MIN_PIECE,
    maxPieceSize: 16 * GIB,
    offlineDealAvailable: true,
    score: 84,
    contactInfo: 'deals@baobab-cold.example',
    acceptEpochs: 2,
    publishEpochs: 15,
    sealEpochs: 240,
  },
  {
    minerId: 't01006',
    location: 'Oceania',
    price: '0.0000015',
    verifiedPrice: '0.00000015',
    minPieceSize: 64 * MIB,
    maxPieceSize: 32 * GIB,
    offlineDealAvailable: false,
    score: 81,
    contactInfo: 'ops@southern-reef.example',
    acceptEpochs: 3,
    publishEpochs: 20,
    sealEpochs: 300,
  },
  {
    minerId: 't01007',
    location: 'Europe',
    price: '0',
    verifiedPrice: '0',
    minPieceSize: MIN_PIECE,
    maxPieceSize: GIB,
    offlineDealAvailable: false,
    score: 42,
    contactInfo: 'community@commons-shelf.example',
    acceptEpochs: 6,
    publishEpochs: 120,
    sealEpochs: 1440,
  },
])
