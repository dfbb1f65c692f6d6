/** Placeholder of the contract: names of S3's object checksums as in x-amz-checksum-<name>. */
export type ChecksumAlgorithm = 'CRC32' | 'CRC32C' | 'CRC64NVME' | 'SHA1' | 'SHA256'
