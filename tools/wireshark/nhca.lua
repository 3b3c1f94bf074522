-- SPDX-License-Identifier: GPL-2.0
--
-- Wireshark dissector of nhca: rCxt datagrams (Documentation/rcxt.rst), and the capability bits in
-- the BTHs of ordinary RoCEv2 packets ("Between nhca ends" in Documentation/wire.rst).
--
--     tshark -X lua_script:tools/wireshark/nhca.lua ...
--
-- The dissector registers for UDP port 4791, and first calls Wireshark's own dissector of this port,
-- which still shows all BTHs and all of RoCEv2.  This script uses no bit operators, because
-- Wireshark 4.0 has Lua 5.2.

local UDP_PORT = 4791
local BTH, RXETH, ICRC = 12, 64, 4
local MAX_TRANSFER, MAX_PACKETS = 16777216, 16384
local MIN_SEGMENT, MAX_SEGMENT = 64, 65532
local MAX_FRAME = 1984
local RXETH_VERSION = 0

local PACKET, WRITE, READ_REQUEST, READ_DATA = 0xc0, 0xc1, 0xc2, 0xc3
local NOTICE, PROBE, STATUS, FENCE = 0xc4, 0xc5, 0xc6, 0xc7
local THIRD_REQUEST, THIRD_WRITE, HALF_WRITE, HALF_REQUEST = 0xc8, 0xc9, 0xcc, 0xcd
local FRAMES_REQUEST, FRAMES_DATA, ACCUMULATE = 0xce, 0xcf, 0xcb
local READ_CHALLENGE, PROBE_CHALLENGE, THIRD_CHALLENGE, FRAMES_CHALLENGE = 0xd2, 0xd5, 0xd8, 0xde
local FIRST_CODE, LAST_CODE = 0xc0, 0xdf

local kinds = {
	[PACKET] = "Packet", [WRITE] = "Write", [READ_REQUEST] = "Read request",
	[READ_DATA] = "Read data", [NOTICE] = "Notice", [PROBE] = "Probe", [STATUS] = "Status",
	[FENCE] = "Fence", [READ_CHALLENGE] = "Read challenge", [PROBE_CHALLENGE] = "Probe challenge",
	[THIRD_REQUEST] = "Third-party request", [THIRD_WRITE] = "Third-party write",
	[THIRD_CHALLENGE] = "Third-party challenge", [HALF_WRITE] = "Half-receive write",
	[HALF_REQUEST] = "Half-send read request",
	[FRAMES_REQUEST] = "Half-receive read request", [FRAMES_DATA] = "Half-receive read data",
	[FRAMES_CHALLENGE] = "Half-receive read challenge", [ACCUMULATE] = "Accumulate",
}
local reserved = {
	[0xca] = "broadcast write payload",
	[0xd0] = "conditional transfers",
}
local codes = {}
for code = FIRST_CODE, LAST_CODE do
	codes[code] = kinds[code] or "Reserved" .. (reserved[code] and ": " .. reserved[code] or "")
end
-- behind: bytes of headers after the RXETH, by kind; has_payload: true for kinds with payload
local behind = { [READ_REQUEST] = 16, [READ_CHALLENGE] = 16, [PROBE] = 8, [PROBE_CHALLENGE] = 8,
	[STATUS] = 8, [FENCE] = 8, [THIRD_REQUEST] = 56, [THIRD_CHALLENGE] = 56, [THIRD_WRITE] = 16,
	[HALF_REQUEST] = 16, [FRAMES_REQUEST] = 16, [FRAMES_CHALLENGE] = 16, [ACCUMULATE] = 4 }
local has_payload = { [PACKET] = true, [WRITE] = true, [READ_DATA] = true, [STATUS] = true,
	[THIRD_WRITE] = true, [HALF_WRITE] = true, [FRAMES_DATA] = true, [ACCUMULATE] = true }
-- kinds whose payload goes, or will go, into frames
local of_frames = { [HALF_WRITE] = true, [FRAMES_REQUEST] = true, [FRAMES_DATA] = true,
	[FRAMES_CHALLENGE] = true }
-- kinds whose RXETH has the bit t, "notify the manager"
local has_third = { [THIRD_REQUEST] = true, [THIRD_CHALLENGE] = true, [THIRD_WRITE] = true, [NOTICE] = true }
local operations = { "sum", "min", "max", "prod", "or", "and", "xor" }
local types = { "i32", "i64", "u32", "u64", "f32", "f64", "bf16" }
-- bytes of an element, by type; the operations from BITWISE on are for types before FLOATING only
local sizes, BITWISE, FLOATING = { 4, 8, 4, 8, 4, 8, 2 }, 5, 5
local FENCED, FORBIDDEN, TOO_LONG = 4, 5, 6
local statuses = { [0] = "done", [1] = "partial", [2] = "none", [3] = "violated",
	[FENCED] = "fenced", [FORBIDDEN] = "target not allowed", [TOO_LONG] = "segment too long" }

local nhca = Proto("nhca", "nhca rCxt Datagram")
local f = {}

local function field(name, kind, ...)
	f[name] = ProtoField[kind]("nhca." .. name, ...)
end

field("kind", "uint8", "Kind", base.HEX, codes)
field("channel", "uint24", "Channel", base.HEX)
field("channel.key", "uint32", "Channel key", base.HEX)
field("channel.key.upper", "uint32", "Channel key, upper half", base.HEX)
field("job", "uint32", "Job", base.DEC)
field("rcxt.index", "uint32", "rCxt index", base.DEC)
field("rcxt.key", "uint32", "rCxt key", base.HEX)
field("tid", "uint32", "tid", base.DEC)
field("total", "uint32", "Total", base.DEC, nil, nil, "Bytes of the transfer")
field("offset", "uint32", "Offset", base.DEC, nil, nil, "Offset of this packet's bytes in the transfer")
field("length", "uint16", "Length", base.DEC, nil, nil, "Payload bytes of this packet")
field("segment", "uint16", "Segment", base.DEC, nil, nil, "Payload bytes of each packet but the last")
field("packet", "uint32", "Packet of the transfer", base.DEC)
field("packets", "uint32", "Packets of the transfer", base.DEC)
for name, title in pairs({ pvo = "PVO", reply_pvo = "Reply PVO" }) do
	field(name, "uint64", title, base.HEX)
	field(name .. ".key", "uint32", "Key", base.HEX)
	field(name .. ".table", "uint8", "Table", base.DEC)
	field(name .. ".offset", "uint64", "Offset", base.HEX)
end
field("version", "uint8", "Version", base.DEC, nil, 0xf0)
field("reserved", "uint8", "Reserved", base.DEC, nil, 0x08)
field("notify.third", "bool", "Notify the manager", 8, nil, 0x08)
field("again", "bool", "Answer to a challenge", 8, nil, 0x04)
field("notify", "uint8", "Notify", base.HEX, { [0] = "nobody", "initiator", "target", "both" }, 0x03)
field("notify.initiator", "bool", "Notify initiator", 8, nil, 0x01)
field("notify.target", "bool", "Notify target", 8, nil, 0x02)
field("src.channel", "uint24", "Source channel", base.HEX)
field("src.channel.key", "uint32", "Source channel key", base.HEX)
field("src.channel.key.upper", "uint32", "Source channel key, upper half", base.HEX)
field("src.rcxt.index", "uint32", "Source rCxt index", base.DEC)
field("src.rcxt.key", "uint32", "Source rCxt key", base.HEX)
field("cookie", "uint64", "Cookie", base.HEX)
field("token", "uint64", "Token", base.HEX, nil, nil, "Proves that the requester receives at its address")
field("status", "uint8", "Status", base.DEC, statuses)
field("have", "uint32", "Have", base.DEC, nil, nil, "Packets of the transfer that have arrived")
field("manager.ipv4", "ipv4", "Manager")
field("manager.ipv6", "ipv6", "Manager")
field("target.ipv4", "ipv4", "Target")
field("target.ipv6", "ipv6", "Target")
field("target.channel", "uint24", "Target channel", base.HEX)
field("target.channel.key", "uint32", "Target channel key", base.HEX)
field("target.rcxt.index", "uint32", "Target rCxt index", base.DEC)
field("target.rcxt.key", "uint32", "Target rCxt key", base.HEX)
field("part", "uint32", "Part", base.DEC, nil, nil, "Bytes to send, from offset on")
field("number", "uint32", "Number of the request", base.DEC)
field("op", "uint8", "Operation", base.DEC, operations)
field("type", "uint8", "Type of the elements", base.DEC, types)
field("payload", "bytes", "Payload")
field("bitmap", "bytes", "Bitmap", base.SPACE, "Packets from offset on; the least significant bit is the first")
field("pad", "bytes", "Pad")
field("icrc", "uint32", "Invariant CRC", base.HEX, nil, nil, "The four bytes in wire order; not verified here")
field("mark", "uint32", "Mark of the sender", base.HEX, nil, nil, "In place of the ICRC; the UDP checksum protects the packet")
field("caps", "uint8", "Capability bits", base.HEX, nil, 0x3f)
field("caps.present", "bool", "PRESENT: the sender is nhca", 8, nil, 0x01)
field("caps.confirmed", "bool", "CONFIRMED: the sender has received PRESENT", 8, nil, 0x02)
field("caps.no_icrc_ok", "bool", "NO_ICRC_OK: the sender accepts packets without an ICRC", 8, nil, 0x04)
field("caps.no_icrc", "bool", "NO_ICRC: this packet has no ICRC", 8, nil, 0x08)
field("caps.acks", "bool", "ACKS: this packet carries an acknowledgment", 8, nil, 0x10)
field("caps.foreign", "uint8", "If set, these are no capability bits", base.HEX, nil, 0x20)
field("refused", "string", "Dropped by nhca, counter")
nhca.fields = f

local function complaint(name, text)
	return ProtoExpert.new("nhca." .. name .. ".expert", text, expert.group.MALFORMED, expert.severity.ERROR)
end
local counters = {
	rx_too_short = complaint("too_short", "Headers are incomplete"),
	rx_bad_version = complaint("bad_version", "Unknown version"),
	rx_bad_opcode = complaint("bad_opcode", "Reserved opcode"),
	rx_bad_length = complaint("bad_length", "Invalid length"),
}
nhca.experts = counters

-- Shows that nhca drops the packet: the counter that it increments, and the reason.
local function refuse(tree, counter, why)
	tree:add(f.refused, counter):set_generated()
	tree:add_proto_expert_info(counters[counter], why)
end

local caps = { "present", "confirmed", "no_icrc_ok", "no_icrc", "acks", "foreign" }

local function add_caps(tree, byte)
	local item = tree:add(f.caps, byte)
	for _, name in ipairs(caps) do
		item:add(f["caps." .. name], byte)
	end
end

-- Returns true if the packet has no ICRC.  nhca never sets bit 0x20, so with that bit the byte has
-- another meaning.
local function no_icrc(byte)
	return byte:bitfield(4, 1) == 1 and byte:bitfield(2, 1) == 0
end

-- A protocol virtual offset: 17 bits of key, 5 of table, 42 of offset
local function add_pvo(tree, name, bytes)
	local item = tree:add(f[name], bytes)
	item:add(f[name .. ".key"], bytes(0, 3), bytes:bitfield(0, 17))
	item:add(f[name .. ".table"], bytes(2, 1), bytes:bitfield(17, 5))
	item:add(f[name .. ".offset"], bytes(2, 6), bytes:bitfield(22, 42))
end

-- A GID: an IPv6 address, or an IPv4-mapped one
local function add_gid(tree, name, bytes)
	local mapped = bytes(0, 8):uint64() == UInt64(0) and bytes(8, 4):uint() == 0xffff
	tree:add(f[name .. (mapped and ".ipv4" or ".ipv6")], mapped and bytes(12, 4) or bytes)
end

local function packets(total, segment)
	return total == 0 and 1 or math.ceil(total / segment)
end

-- Checks the rules of "Lengths" in Documentation/rcxt.rst.  Returns the error, or nil.
local function misfit(x, payload)
	if x.length ~= payload then
		return string.format("length is %d, payload is %d", x.length, payload)
	end
	if x.code == PACKET then
		if x.length > MAX_FRAME then return "longer than a frame" end
		if x.total ~= x.length then return "total is not length" end
		return x.offset ~= 0 and "offset is not 0" or nil
	end
	if x.total > MAX_TRANSFER then return "total is more than 2^24" end
	if x.segment < MIN_SEGMENT or x.segment > MAX_SEGMENT or x.segment % 4 ~= 0 then
		return "segment is not a multiple of 4 from 64 to 65532"
	end
	if packets(x.total, x.segment) > MAX_PACKETS then return "more than 16384 packets" end
	if x.offset % x.segment ~= 0 then return "offset is no multiple of segment" end
	if x.offset ~= 0 and x.offset >= x.total then return "offset is not less than total" end
	if x.code ~= NOTICE and has_third[x.code] and (not x.third or x.initiator) then
		return "notifies another end than the manager"
	end
	if of_frames[x.code] and x.segment > MAX_FRAME then return "segment is longer than a frame" end
	if x.part then
		local left = x.total - x.offset
		local whole = x.part ~= 0 and x.part < left and x.part % x.segment == 0
		if x.length ~= 0 then return "length is not 0" end
		return x.part ~= left and not whole and "part is not whole packets" or nil
	end
	if of_frames[x.code] and x.pvo ~= UInt64(x.offset) then return "PVO is not offset" end
	if x.code == ACCUMULATE then
		local size = sizes[x.type]
		if not operations[x.op] or not size or (x.op >= BITWISE and x.type >= FLOATING) then
			return "no such operation for elements of this type"
		end
		if x.total % size ~= 0 or x.segment % size ~= 0 then return "parts of elements" end
		if x.pvo:lower() % size ~= 0 then return "PVO is not aligned" end
	end
	if has_payload[x.code] and x.code ~= STATUS then
		local due = math.min(x.segment, x.total - x.offset)
		return x.length ~= due and string.format("length should be %d", due) or nil
	end
	if x.code == STATUS then
		if x.status > TOO_LONG then return "unknown status" end
		if x.length > MAX_FRAME then return "longer than a frame" end
		local bits = packets(x.total - x.offset, x.segment)
		return x.length > math.ceil(bits / 8) and "more bits than packets from offset on" or nil
	end
	if x.length ~= 0 then return "length is not 0" end
	return x.code ~= PROBE and x.code ~= PROBE_CHALLENGE and x.offset ~= 0 and
	       "offset is not 0" or nil
end

-- Adds the RXETH and the headers after it.  Returns the fields that misfit() checks.
local function add_rxeth(tree, code, h)
	local x = {
		code = code, tid = h(16, 4):uint(), total = h(20, 4):uint(), offset = h(24, 4):uint(),
		length = h(28, 2):uint(), segment = h(30, 2):uint(), version = h(40, 1):bitfield(0, 4),
		rcxt = h(8, 4):uint(), pvo = h(32, 8):uint64(), third = h(40, 1):bitfield(4, 1) == 1,
		initiator = h(40, 1):bitfield(7, 1) == 1,
	}
	tree:add(f["channel.key"], h(0, 4))
	tree:add(f.job, h(4, 4))
	tree:add(f[code == PACKET and "channel.key.upper" or "rcxt.index"], h(8, 4))
	tree:add(f["rcxt.key"], h(12, 4))
	tree:add(f.tid, h(16, 4))
	tree:add(f.total, h(20, 4))
	tree:add(f.offset, h(24, 4))
	tree:add(f.length, h(28, 2))
	tree:add(f.segment, h(30, 2))
	if x.segment ~= 0 then
		x.packet, x.packets = math.floor(x.offset / x.segment), packets(x.total, x.segment)
		tree:add(f.packet, h(24, 8), x.packet):set_generated()
		tree:add(f.packets, h(20, 12), x.packets):set_generated()
	end
	add_pvo(tree, "pvo", h(32, 8))
	tree:add(f.version, h(40, 1))
	tree:add(f[has_third[code] and "notify.third" or "reserved"], h(40, 1))
	tree:add(f.again, h(40, 1))
	local notify = tree:add(f.notify, h(40, 1))
	notify:add(f["notify.initiator"], h(40, 1))
	notify:add(f["notify.target"], h(40, 1))
	tree:add(f["src.channel"], h(41, 3))
	tree:add(f["src.channel.key"], h(44, 4))
	tree:add(f[code == PACKET and "src.channel.key.upper" or "src.rcxt.index"], h(48, 4))
	tree:add(f["src.rcxt.key"], h(52, 4))
	tree:add(f.cookie, h(56, 8))
	if code == THIRD_REQUEST or code == THIRD_CHALLENGE then
		local at = RXETH
		add_pvo(tree, "reply_pvo", h(at, 8))
		tree:add(f.token, h(at + 8, 8))
		add_gid(tree, "target", h(at + 16, 16))
		tree:add(f["target.channel"], h(at + 33, 3))
		tree:add(f["target.channel.key"], h(at + 36, 4))
		tree:add(f["target.rcxt.index"], h(at + 40, 4))
		tree:add(f["target.rcxt.key"], h(at + 44, 4))
		x.part = h(at + 48, 4):uint()
		tree:add(f.part, h(at + 48, 4))
		tree:add(f.number, h(at + 52, 4))
	elseif code == THIRD_WRITE then
		add_gid(tree, "manager", h(RXETH, 16))
	elseif code == ACCUMULATE then
		x.op, x.type = h(RXETH, 1):uint(), h(RXETH + 1, 1):uint()
		tree:add(f.op, h(RXETH, 1))
		tree:add(f.type, h(RXETH + 1, 1))
	elseif code == READ_REQUEST or code == READ_CHALLENGE or code == HALF_REQUEST then
		add_pvo(tree, "reply_pvo", h(RXETH, 8))
		tree:add(f.token, h(RXETH + 8, 8))
	elseif code == FRAMES_REQUEST or code == FRAMES_CHALLENGE then
		x.part = h(RXETH, 4):uint()
		tree:add(f.part, h(RXETH, 4))
		tree:add(f.number, h(RXETH + 4, 4))
		tree:add(f.token, h(RXETH + 8, 8))
	elseif code == PROBE or code == PROBE_CHALLENGE or code == FENCE then
		tree:add(f.token, h(RXETH, 8))
	elseif code == STATUS then
		x.status, x.have = h(RXETH, 1):uint(), h(RXETH + 4, 4):uint()
		tree:add(f.status, h(RXETH, 1))
		tree:add(f.have, h(RXETH + 4, 4))
	end
	return x
end

-- Returns the Info column.
local function summary(x, channel)
	local words = { kinds[x.code], string.format("channel=0x%06x", channel) }
	if x.code == PACKET then
		table.insert(words, "length=" .. x.length)
	else
		table.insert(words, string.format("rCxt=%d tid=%d", x.rcxt, x.tid))
		if x.packets then
			table.insert(words, string.format("packet=%d/%d", x.packet, x.packets))
		end
		table.insert(words, "total=" .. x.total)
	end
	if x.op then
		table.insert(words, string.format("%s of %s", operations[x.op] or "?", types[x.type] or "?"))
	end
	if x.status then
		table.insert(words, string.format("%s have=%d", statuses[x.status] or "?", x.have))
	end
	return table.concat(words, " ")
end

-- Dissects one packet, which begins with its BTH.  Returns its Info column.
local function rcxt(tvb, tree)
	local code, size = tvb(0, 1):uint(), tvb:reported_len()
	local pad, channel = tvb(1, 1):bitfield(2, 2), tvb(5, 3):uint()
	tree:add(f.kind, tvb(0, 1))
	tree:add(f.channel, tvb(5, 3))
	add_caps(tree, tvb(4, 1))

	if tvb(1, 1):bitfield(4, 4) ~= 0 then
		refuse(tree, "rx_bad_version", "the version of the BTH is not 0")
		return "BTH of another version"
	end
	if not kinds[code] then
		refuse(tree, "rx_bad_opcode", codes[code])
		return codes[code]
	end
	local headers = BTH + RXETH + (behind[code] or 0)
	if size < headers then
		refuse(tree, "rx_too_short", string.format("%d bytes, but the headers have %d", size, headers))
		return kinds[code] .. " [incomplete]"
	end
	if tvb:len() < headers then
		return kinds[code] .. " [not captured]"
	end
	local x = add_rxeth(tree, code, tvb(BTH, headers - BTH))
	local line = summary(x, channel)

	local payload = size - headers - pad - ICRC
	if payload < 0 or (size - headers) % 4 ~= 0 then
		refuse(tree, "rx_bad_length", "no room for pad and ICRC, or not whole words")
		return line
	end
	if not has_payload[code] and size ~= headers + ICRC then
		refuse(tree, "rx_bad_length", "payload or pad, but the opcode has no payload")
	elseif x.version ~= RXETH_VERSION then
		refuse(tree, "rx_bad_version", "the version of the RXETH is not 0")
	else
		local why = misfit(x, payload)
		if why then refuse(tree, "rx_bad_length", why) end
	end
	if tvb:len() < size then
		return line
	end
	if payload > 0 then
		tree:add(code == STATUS and f.bitmap or f.payload, tvb(headers, payload))
	end
	if pad > 0 then
		tree:add(f.pad, tvb(headers + payload, pad))
	end
	tree:add(no_icrc(tvb(4, 1)) and f.mark or f.icrc, tvb(size - ICRC, ICRC))
	return line
end

-- Offload may have joined several packets into one buffer before the capture.  Returns the length of
-- the first packet if another packet with the same opcode for the same channel follows it, or else the
-- length of the buffer.
local function first_of_batch(tvb)
	local size, code = tvb:len(), tvb(0, 1):uint()
	local rest = BTH + RXETH + (behind[code] or 0)
	if size ~= tvb:reported_len() or not kinds[code] or size < rest + ICRC or not no_icrc(tvb(4, 1)) then
		return size
	end
	local length = tvb(BTH + 28, 2):uint()
	local one = rest + math.ceil(length / 4) * 4 + ICRC
	if one + rest + ICRC > size or tvb(one, 1):uint() ~= code or
	   tvb(one + 4, 4):uint() ~= tvb(4, 4):uint() then
		return size
	end
	return one
end

local table_of_ports = DissectorTable.get("udp.port")
local before = table_of_ports:get_dissector(UDP_PORT)

function nhca.dissector(tvb, pinfo, tree)
	if before then
		before:call(tvb, pinfo, tree)
	end
	if tvb:len() < BTH then
		return
	end
	local code, caps = tvb(0, 1):uint(), tvb(4, 1)
	if code < FIRST_CODE or code > LAST_CODE then
		-- RoCEv2: show only the capability bits, if there are any
		if caps:bitfield(2, 6) ~= 0 then
			add_caps(tree:add(nhca, caps, "nhca capability bits"), caps)
		end
		return
	end
	pinfo.cols.protocol = "rCxt"
	local at, lines = 0, {}
	while at < tvb:reported_len() do
		local left = at == 0 and tvb or tvb(at):tvb()
		local one = first_of_batch(left)
		local packet = one < left:len() and left(0, one):tvb() or left
		table.insert(lines, rcxt(packet, tree:add(nhca, packet())))
		at = at + packet:reported_len()
	end
	pinfo.cols.info = lines[1] .. (#lines > 1 and string.format(" [and %d more]", #lines - 1) or "")
end

table_of_ports:add(UDP_PORT, nhca)
