// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.26;

/// Token with six decimals and without a value, of which everyone can have some. For tests.
contract TestCoin {
    string public constant symbol = "TEST";
    uint8 public immutable decimals;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    constructor(uint8 digits) {
        decimals = digits;
    }

    function mint(address to, uint256 amount) external {
        balanceOf[to] += amount;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        allowance[from][msg.sender] -= amount;
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        return true;
    }
}

/// Holds payments for uploads until the owner of the contract unlocks them, or gives them back. For tests: it has the
/// calls and events that the storage payment API follows, and no more.
contract StoragePayment {
    struct Order {
        string id;
        uint256 minPayment;
        uint256 amount;
        uint256 lockTime;
        address recipient;
        uint256 size;
        uint8 copyLimit;
    }

    struct Lock {
        address owner;
        address recipient;
        uint256 rest;
        uint256 deadline;
        uint256 minPayment;
        uint256 size;
        uint256 blockNumber;
        uint8 copyLimit;
        bool isOpen;
    }

    /// What contracts of payments answer to questions about a lock.
    struct TxInfo {
        string id;
        address token;
        uint256 minPayment;
        uint256 lockedFee;
        address owner;
        address recipient;
        uint256 deadline;
        bool _isExisted;
        uint256 size;
        uint8 copyLimit;
        uint256 blockNumber;
    }

    event LockPayment(
        string id,
        address token,
        uint256 lockedFee,
        uint256 minPayment,
        address recipient,
        uint256 deadline,
        uint256 size,
        uint8 copyLimit
    );
    event UnlockPayment(string id, address token, uint256 cost, uint256 restToken, address recipient, address owner);
    event UnlockCarPayment(string dealId, string network, address recipient);
    event Refund(string cid, address owner, uint256 amount);

    address private immutable operator = msg.sender;
    TestCoin private immutable coin;
    mapping(string => Lock) private locks;

    constructor(TestCoin token) {
        coin = token;
    }

    function lockTokenPayment(Order calldata order) external returns (bool) {
        require(!locks[order.id].isOpen, "locked already");
        require(order.minPayment > 0 && order.amount >= order.minPayment, "too little");
        coin.transferFrom(msg.sender, address(this), order.amount);
        uint256 deadline = block.timestamp + order.lockTime;
        locks[order.id] = Lock(
            msg.sender,
            order.recipient,
            order.amount,
            deadline,
            order.minPayment,
            order.size,
            block.number,
            order.copyLimit,
            true
        );
        emit LockPayment(
            order.id,
            address(coin),
            order.amount,
            order.minPayment,
            order.recipient,
            deadline,
            order.size,
            order.copyLimit
        );
        return true;
    }

    /// Pays a part of a lock to its recipient.
    function unlockPayment(string calldata id, uint256 cost) external {
        require(msg.sender == operator, "not the operator");
        Lock storage lock = take(id, cost);
        emit UnlockPayment(id, address(coin), cost, lock.rest, lock.recipient, lock.owner);
    }

    /// Pays a part of a lock for a deal: the event does not name the lock, and a lock without a rest ends without one.
    function unlockCarPayment(string calldata id, uint256 cost) external {
        require(msg.sender == operator, "not the operator");
        Lock storage lock = take(id, cost);
        emit UnlockCarPayment("1", "network", lock.recipient);
    }

    function take(string calldata id, uint256 cost) private returns (Lock storage lock) {
        lock = locks[id];
        lock.rest -= cost;
        lock.isOpen = lock.rest > 0;
        coin.transfer(lock.recipient, cost);
    }

    function getLockedPaymentInfo(string calldata id) external view returns (TxInfo memory info) {
        Lock storage lock = locks[id];
        if (lock.owner == address(0)) return info;
        return
            TxInfo(
                "",
                address(coin),
                lock.minPayment,
                lock.rest,
                lock.owner,
                lock.recipient,
                lock.deadline,
                lock.isOpen,
                lock.size,
                lock.copyLimit,
                lock.blockNumber
            );
    }

    /// Gives the rest of locks back: the operator at any time, others after their deadline.
    function refund(string[] calldata ids) external {
        for (uint256 at = 0; at < ids.length; at++) {
            Lock storage lock = locks[ids[at]];
            if (!lock.isOpen || (msg.sender != operator && block.timestamp <= lock.deadline)) continue;
            uint256 rest = lock.rest;
            lock.isOpen = false;
            coin.transfer(lock.owner, rest);
            emit Refund(ids[at], lock.owner, rest);
        }
    }
}
