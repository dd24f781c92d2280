-- FECN, BECN and CNP as fields of their own, which Wireshark does not have: it shows their byte of
-- the BTH as reserved. Works in Wireshark and tshark from 3.0 on.
--
--   clearlane capture --post-dissector > clearlane.lua
--   tshark -X lua_script:clearlane.lua -r h4.pcap -Y clearlane.fecn
--
-- Or put the file into the folder of personal Lua plug-ins (Help, About Wireshark, Folders).

local clearlane = Proto("clearlane", "Congestion of InfiniBand")

local fecn = ProtoField.bool("clearlane.fecn", "FECN", base.NONE, nil, 0,
    "A switch on the way was congested (IBA vol. 1, A10.3.1)")
local becn = ProtoField.bool("clearlane.becn", "BECN", base.NONE, nil, 0,
    "A packet the other way was marked (IBA vol. 1, A10.3.1)")
local cnp = ProtoField.bool("clearlane.cnp", "CNP", base.NONE, nil, 0,
    "Congestion notification packet, opcode 0x80 of InfiniBand or 0x81 of RoCE v2")
local ce = ProtoField.bool("clearlane.ce", "CE", base.NONE, nil, 0,
    "Congestion experienced: both ECN bits of the IP header are set (RFC 3168)")
local marked = ProtoField.bool("clearlane.marked", "Marked", base.NONE, nil, 0,
    "FECN or CE")

clearlane.fields = { fecn, becn, cnp, ce, marked }

local bth_field = Field.new("infiniband.bth")
local ecn_field = Field.new("ip.dsfield.ecn")
local ecn6_field = Field.new("ipv6.tclass.ecn")

local FECN, BECN, CE = 0x80, 0x40, 3
local MARKS = 4 -- byte of the BTH
local CNP_INFINIBAND, CNP_ROCE = 0x80, 0x81

local function has(byte, bit)
    return math.floor(byte / bit) % 2 == 1
end

function clearlane.dissector(buffer, packet, tree)
    local bth = bth_field()
    if bth == nil or bth.len <= MARKS then
        return
    end
    local range = bth.range(MARKS, 1)
    local marks, opcode = range:uint(), bth.range(0, 1):uint()
    local ecn = ecn_field() or ecn6_field()
    local is_ce = ecn ~= nil and ecn.value == CE
    local is_fecn, is_becn = has(marks, FECN), has(marks, BECN)
    local is_cnp = opcode == CNP_INFINIBAND or opcode == CNP_ROCE
    if not (is_fecn or is_becn or is_cnp or is_ce) then
        return
    end
    -- A field is there only where it is true, so that a filter of its name finds just those packets.
    local branch = tree:add(clearlane, range)
    if is_fecn then
        branch:add(fecn, range, true)
    end
    if is_becn then
        branch:add(becn, range, true)
    end
    if is_cnp then
        branch:add(cnp, bth.range(0, 1), true)
    end
    if is_ce then
        branch:add(ce, true):set_generated()
    end
    if is_fecn or is_ce then
        branch:add(marked, true):set_generated()
    end
end

register_postdissector(clearlane)
